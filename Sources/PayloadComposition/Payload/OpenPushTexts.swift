import CanonicalJSON
import GateVocabulary
import SealedFormat

/// The members of an open push as texts, whatever their shape is in a provider's body (FCM, `Message.data`: values are
/// strings). A generic push has no more than constant texts, the random id of the send, and the way to mute.
///
/// The body that FCM gets shows them, and the origin key signs them.
struct OpenPushTexts {
    private var members: [(name: OpenPushMember, text: String)] = []

    subscript(name: OpenPushMember) -> String? { members.first { $0.name == name }?.text }

    /// In the order of ``OpenPushMember``, which is the order they are signed in.
    fileprivate mutating func add(_ name: OpenPushMember, _ text: String?) {
        if let text { members.append((name, text)) }
    }

    /// What the origin key signs.
    func content() throws(CompositionError) -> OpenPushContent {
        do throws(SealedFormatError) {
            return try OpenPushContent(members)
        } catch {
            // Longer than any provider takes, and so refused by its size before it is signed.
            throw .tooLongToSign
        }
    }

    fileprivate init() { members.reserveCapacity(12) }
}

extension NotificationContent {
    func openPushTexts(for platform: Platform, as form: BodyForm) -> OpenPushTexts {
        var texts = OpenPushTexts()
        guard form == .full else {
            texts.add(.body, constantText.body.text)
            texts.add(.send, send.uuidText)
            texts.add(.title, closedTitle)
            texts.add(.unsubscribe, unsubscribeLink?.text)
            return texts
        }
        let shown = shownTexts
        if platform == .ios { texts.add(.actionCategory, actionCategory?.text) }
        if number != nil { texts.add(.alertRecord, hasAlertRecord ? "true" : "false") }
        if platform == .ios { texts.add(.badge, badge.map { String($0) }) }
        texts.add(.body, shown.body)
        texts.add(.category, category.rawValue)
        texts.add(.deepLink, deepLink?.text)
        texts.add(.number, number.map { String($0) })
        let references = references
        if !references.isEmpty { texts.add(.params, references.description) }
        texts.add(.send, send.uuidText)
        texts.add(.title, shown.title)
        texts.add(.type, type.text)
        texts.add(.unsubscribe, unsubscribeLink?.text)
        return texts
    }
}
