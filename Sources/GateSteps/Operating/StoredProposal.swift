import CanonicalJSON
import GateVocabulary
import KeyLifecycle

/// The proposal of one caller, which another has to bring as well. It is kept as a setting.
struct StoredProposal {
    /// The text that must be the same when the other caller brings it.
    var content: String
    var by: GatewayKey.Proposal
}

extension StoredProposal {
    /// - Parameter contentKey: The name of the content in the text.
    func text(contentKey: String) -> String {
        JSONValue.object([
            "at": .integer(by.at.milliseconds), "caller": .string(by.caller.text),
            contentKey: .string(content),
        ]).description
    }

    init?(text: String, contentKey: String) {
        guard let value = try? CanonicalJSON.read(Array(text.utf8)),
            let content = value[contentKey]?.stringValue, let caller = value["caller"]?.stringValue,
            let at = value["at"]?.integerValue
        else { return nil }
        self.init(content: content, by: .init(caller: CallerName(caller), at: Instant(milliseconds: at)))
    }
}
