"""Name artifacts before their bytes are published: the path depends only on the digest."""

from dataclasses import dataclass, field

from tooltrail.artifacts.paths import artifact_path
from tooltrail.records import ArtifactReference, StreamRecord
from tooltrail.records.digests import Digest


@dataclass
class ArtifactNamer:
    """An `ArtifactPublisher` that only names streams; the ingester publishes them.

    Attributes:
        named: all named streams, by digest.
    """

    named: dict[Digest, StreamRecord] = field(default_factory=dict[Digest, StreamRecord])

    def publish(self, stream: StreamRecord) -> ArtifactReference:
        """The reference of a stream; see `ArtifactPublisher`."""
        self.named[stream.digest] = stream
        return ArtifactReference(path=artifact_path(stream.digest))
