import CanonicalJSON
import GateRecords
import GateSteps
import GateVocabulary
import Logging

extension Logger {
    /// One line of what the gateway tells its operator.
    func tell(_ notice: OperatorNotice) {
        switch notice {
        case .alarm(let text): critical("\(text)")
        case .over(let text): self.notice("\(text)")
        case .recorded(let kind, let entry):
            log(level: kind == .unknownPeer ? .warning : .notice, "recorded: \(kind)", metadata: entry.logged)
        }
    }
}

extension StoredEntry {
    /// The members of an entry, lists and objects left out, and where it stands in the trail.
    fileprivate var logged: Logger.Metadata {
        var metadata: Logger.Metadata = ["entry": "\(index)"]
        guard let entry = try? TrailEntry(reading: bytes) else { return metadata }
        for (name, value) in entry.members {
            switch value {
            case .string(let text): metadata[name] = "\(text)"
            case .integer(let number): metadata[name] = "\(number)"
            case .boolean(let flag): metadata[name] = "\(flag)"
            default: break
            }
        }
        return metadata
    }
}
