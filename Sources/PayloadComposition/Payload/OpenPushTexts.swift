import CanonicalJSON
import GateVocabulary
import SealedFormat

/// The members of an open push as texts, whatever their shape is in a provider's body (FCM, `Message.data`: values are
/// strings). A generic push has no more than constant texts, the random id of the send, and the way to mute.
///
/// The bodies that FCM and Expo get show them, and the origin key signs them.
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

    /// Writes everything that is signed as members of a `data` object, as the app reads it in the foreground and after a tap:
    /// what the system shows of a push reaches the app in neither case.
    ///
    /// - Returns: The place of the origin's mark.
    func write<Sink: PayloadSink & ~Copyable>(to json: inout Sink) -> Int {
        var place = 0
        json.member("action_category", self[.actionCategory])
        json.member("alert_record", self[.alertRecord])
        json.member("badge", self[.badge])
        json.member("body", self[.body])
        json.member("category", self[.category])
        json.member("deep_link", self[.deepLink])
        json.member("number", self[.number])
        json.member("origin") { $0.quoted { place = $0.byteCount } }
        json.member("params", self[.params])
        json.member("send_id", self[.send])
        json.member("title", self[.title])
        json.member("type", self[.type])
        json.member("unsubscribe", self[.unsubscribe])
        return place
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
