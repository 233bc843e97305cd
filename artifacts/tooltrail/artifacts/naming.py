"""Names artifacts before their bytes are published: the path follows from the digest."""

from dataclasses import dataclass, field

from tooltrail.artifacts.paths import artifact_path
from tooltrail.records import ArtifactReference, StreamRecord
from tooltrail.records.digests import Digest


@dataclass
class ArtifactNamer:
    """An `ArtifactPublisher` that names streams and leaves the publishing to the ingester.

    Attributes:
        named: every stream that got a name, by digest.
    """

    named: dict[Digest, StreamRecord] = field(default_factory=dict[Digest, StreamRecord])

    def publish(self, stream: StreamRecord) -> ArtifactReference:
        """The reference of a stream; see `ArtifactPublisher`."""
        self.named[stream.digest] = stream
        return ArtifactReference(path=artifact_path(stream.digest))
