import CanonicalJSON
import GateVocabulary
package import SealedFormat

/// An open push that was composed. What the origin key signs of it is made when it is signed, by the thread that signs.
package struct OpenPush: Sendable {
    private let notification: NotificationContent
    private let platform: Platform
    private let form: BodyForm
    /// Those of the body, where it has them as they are signed.
    private let texts: OpenPushTexts?

    /// - Throws: ``CompositionError/tooLongToSign``
    init(
        _ notification: NotificationContent, for platform: Platform, as form: BodyForm, in body: WrittenBody
    ) throws(CompositionError) {
        self.notification = notification
        self.platform = platform
        self.form = form
        texts = body.texts
        // The body has each of its texts, so none of a shorter one is too long.
        if body.byteCount > OpenPushContent.textByteCountMax { _ = try content() }
    }

    /// What the origin key signs.
    package func content() throws(CompositionError) -> OpenPushContent {
        do throws(SealedFormatError) {
            return try OpenPushContent(
                (texts ?? notification.openPushTexts(for: platform, as: form)).members)
        } catch {
            // Longer than any provider takes, and so refused by its size before it is signed.
            throw .tooLongToSign
        }
    }
}

/// The members of an open push as texts, whatever their shape is in a provider's body (FCM, `Message.data`: values are
/// strings). A generic push has no more than constant texts, the random id of the send, and the way to mute.
///
/// The body that FCM gets shows them, and the origin key signs them: each is made once for both.
struct OpenPushTexts {
    fileprivate private(set) var members: [(name: OpenPushMember, text: String)] = []

    subscript(name: OpenPushMember) -> String? { members.first { $0.name == name }?.text }

    /// In the order of ``OpenPushMember``, which is the order they are signed in.
    fileprivate mutating func add(_ name: OpenPushMember, _ text: String?) {
        if let text { members.append((name, text)) }
    }

    fileprivate init() { members.reserveCapacity(12) }
}

extension NotificationContent {
    func openPushTexts(for platform: Platform, as form: BodyForm) -> OpenPushTexts {
        var texts = OpenPushTexts()
        guard form == .full else {
            texts.add(.body, constantText.body)
            texts.add(.send, send.uuidText)
            texts.add(.title, closedTitle)
            texts.add(.unsubscribe, unsubscribeLink)
            return texts
        }
        let shown = shownTexts
        if platform == .ios { texts.add(.actionCategory, actionCategory) }
        if number != nil { texts.add(.alertRecord, hasAlertRecord ? "true" : "false") }
        if platform == .ios { texts.add(.badge, badge.map { String($0) }) }
        texts.add(.body, shown.body)
        texts.add(.category, category.rawValue)
        texts.add(.deepLink, deepLink)
        texts.add(.number, number.map { String($0) })
        let references = references
        if !references.isEmpty { texts.add(.params, references.description) }
        texts.add(.send, send.uuidText)
        texts.add(.title, shown.title)
        texts.add(.type, type.text)
        texts.add(.unsubscribe, unsubscribeLink)
        return texts
    }
}
