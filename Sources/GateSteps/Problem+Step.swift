import CanonicalJSON
import WireProtocol

extension Problem {
    /// For a request that has its shape, and whose member contradicts another or the stored state.
    init(wrong member: String, _ message: String) {
        self.init(.invalidRequest, violations: [Violation(.body(JSONPointer([member])), message)])
    }

    /// What exactly is wrong, without the title.
    var message: String { detail ?? violations.map(\.description).joined(separator: "; ") }
}
