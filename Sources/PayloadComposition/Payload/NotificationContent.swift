package import CanonicalJSON
package import GateVocabulary
import SealedFormat

/// Everything one notification could say and show at one destination. Which of it does say and show is
/// decided by the form it is composed in.
///
/// A class, because it is handed from writer to writer and into their closures: as a value each hand-over copied all of it.
package final class NotificationContent: Sendable {
    package let send: SendID
    package let message: MessageID
    package let type: TypeID
    /// S2's number for the type, if it has one.
    package let number: Int?
    /// Whether S2's alerts table has a row that the app can look up by `alertId`; told beside ``number``.
    package let hasAlertRecord: Bool
    package let category: Category
    package let tier: Tier
    /// Who writes: in front of every text message, of every subject, and of what a generic text says.
    package let brand: CountedText
    package let texts: NotificationTexts
    /// The one text per app and tier that is true of every notification.
    package let constantText: ConstantText
    /// As the producer sent them. Params only ever travel inside a seal.
    package let params: JSONObject
    /// The names of those that are random references (UUIDs), S2's "extras": the only ones that may travel in clear. In
    /// canonical order.
    package let referenceNames: [String]
    package let deepLink: CountedText?
    /// What a device stacks together.
    package let thread: CountedText?
    package let sound: String?
    /// The APNs category: which buttons the notification has.
    package let actionCategory: CountedText?
    package let androidChannel: String?
    package let badge: Int?
    package let interruption: Interruption
    package let privacy: PrivacyLevel
    package let sentAt: Instant
    /// When this payload is made: later than ``sentAt`` for a message that waited.
    package let composedAt: Instant
    package let expiresAt: Instant
    /// A keyed tag: the caller's collapse key never leaves the gateway.
    package let collapse: Tag?
    /// ``collapse``, or a keyed tag of this message alone: whether something collapses would tell the type. Every form but the
    /// full one needs it.
    package let closedCollapse: Tag?
    /// Mutes the category without a login; inside every marketing and social message (S1).
    package let unsubscribeLink: CountedText?
    /// Stands below an e-mail that has an ``unsubscribeLink``.
    package let emailFooter: EmailFooter?
    /// The time by which the app replaces the key of the seal. `nil` until the policy has the app notified.
    package let rotateKeyBy: Instant?

    /// A text that says nothing of the notification that it stands for.
    package struct ConstantText: Hashable, Sendable {
        package var title: CountedText
        package var body: CountedText

        package init(title: CountedText, body: CountedText) {
            self.title = title
            self.body = body
        }
    }

    package init(
        send: SendID, message: MessageID, type: TypeID, number: Int? = nil,
        hasAlertRecord: Bool = false, category: Category, tier: Tier,
        brand: CountedText, texts: NotificationTexts, constantText: ConstantText, params: JSONObject = [:],
        referenceNames: [String] = [],
        deepLink: CountedText? = nil, thread: CountedText? = nil, sound: String? = nil,
        actionCategory: CountedText? = nil,
        androidChannel: String? = nil, badge: Int? = nil, interruption: Interruption, privacy: PrivacyLevel,
        sentAt: Instant, composedAt: Instant, expiresAt: Instant, collapse: Tag? = nil, closedCollapse: Tag?,
        unsubscribeLink: CountedText? = nil, emailFooter: EmailFooter? = nil, rotateKeyBy: Instant? = nil
    ) {
        self.send = send
        self.message = message
        self.type = type
        self.number = number
        self.hasAlertRecord = hasAlertRecord
        self.category = category
        self.tier = tier
        self.brand = brand
        self.texts = texts
        self.constantText = constantText
        self.params = params
        self.referenceNames = referenceNames
        self.deepLink = deepLink
        self.thread = thread
        self.sound = sound
        self.actionCategory = actionCategory
        self.androidChannel = androidChannel
        self.badge = badge
        self.interruption = interruption
        self.privacy = privacy
        self.sentAt = sentAt
        self.composedAt = composedAt
        self.expiresAt = expiresAt
        self.collapse = collapse
        self.closedCollapse = closedCollapse
        self.unsubscribeLink = unsubscribeLink
        self.emailFooter = emailFooter
        self.rotateKeyBy = rotateKeyBy
    }

    /// The params of ``referenceNames``.
    var references: JSONObject {
        params.filtered { param in referenceNames.contains { CodeUnits.equal($0, param.key) } }
    }

    /// What a screen shows in the full form: everything when the recipient asked for it, else the public
    /// texts where the type has any.
    var shownTexts: (title: String, body: String) {
        guard privacy != .full else { return (texts.title, texts.body) }
        return (texts.publicTitle ?? texts.title, texts.publicBody ?? texts.body)
    }

    /// - Precondition: Composed in another form than the full one.
    var closedTag: Tag {
        guard let closedCollapse else {
            preconditionFailure("\(message) was composed closed, without its own tag")
        }
        return closedCollapse
    }

    /// The constant text with who writes it.
    func writeClosedTitle<Sink: PayloadSink & ~Copyable>(to json: inout Sink) {
        json.quoted { json in
            json.characters(brand)
            json.raw(": ")
            json.characters(constantText.title)
        }
    }

    var closedTitle: String { "\(brand.text): \(constantText.title.text)" }

    /// A text after the name of who writes it.
    func writeBranded<Sink: PayloadSink & ~Copyable>(_ text: String, to json: inout Sink) {
        json.quoted { json in
            json.characters(brand)
            json.raw(": ")
            json.characters(text)
        }
    }

    /// Seconds from ``composedAt`` that stand outside a seal.
    package var closedLifeSeconds: Int64 {
        ExpiryClass.seconds(until: expiresAt, from: composedAt, tier: tier)
    }

    /// What goes inside the seal: canonical JSON, for the app's eyes only.
    ///
    ///     {action_category?, alert_record?, android_channel?, badge?, body, category, deep_link?, expires_at,
    ///      interruption, number?, padding?, params, privacy, public_body?, public_title?, rotate_key_by?, send_id,
    ///      sent_at, sound?, thread?, title, type, unsubscribe?}
    ///
    /// `padding` says nothing: it makes every content long enough for one bucket
    /// (``CompositionLimits/sealedContentByteCountMin``).
    /// `sent_at` and `expires_at` are in milliseconds since 1970, and nothing is shown after the second; `category` is
    /// the consent axis, which an app mutes by. `rotate_key_by`, in milliseconds too, is left out where it would take the
    /// content into a larger bucket: whether a key is old shows in no length, and is no reason to refuse a message.
    func sealedContent(for platform: Platform) -> [UInt8] {
        let rotateKeyBy = rotateKeyByTold(on: platform)
        func content(padding: Int?) -> [UInt8] {
            var json = CanonicalWriter(capacity: 1_024)
            writeContent(for: platform, rotateKeyBy: rotateKeyBy, padding: padding, to: &json)
            return json.finish()
        }
        let bytes = content(padding: nil)
        let missing = CompositionLimits.sealedContentByteCountMin - bytes.count
        guard missing > 0 else { return bytes }
        return content(padding: max(0, missing - Self.paddingMemberByteCount))
    }

    /// The length of ``sealedContent(for:)``.
    func sealedContentByteCount(for platform: Platform) -> Int {
        let byteCount = contentByteCount(for: platform, rotateKeyBy: rotateKeyByTold(on: platform))
        let missing = CompositionLimits.sealedContentByteCountMin - byteCount
        guard missing > 0 else { return byteCount }
        return byteCount + max(missing, Self.paddingMemberByteCount)
    }

    /// Bytes of the member `padding` without what it says.
    private static let paddingMemberByteCount = #""padding":"","#.utf8.count

    /// ``rotateKeyBy``, where its bucket has the bytes for it.
    private func rotateKeyByTold(on platform: Platform) -> Instant? {
        guard let rotateKeyBy else { return nil }
        func bucket(_ told: Instant?) -> Int? {
            SealedLimits.bucket(
                contentByteCount: max(
                    contentByteCount(for: platform, rotateKeyBy: told),
                    CompositionLimits.sealedContentByteCountMin))
        }
        guard let bucketWithout = bucket(nil), bucket(rotateKeyBy) == bucketWithout else { return nil }
        return rotateKeyBy
    }

    private func contentByteCount(for platform: Platform, rotateKeyBy: Instant?) -> Int {
        var counter = ByteCounter()
        writeContent(for: platform, rotateKeyBy: rotateKeyBy, padding: nil, to: &counter)
        return counter.byteCount
    }

    private func writeContent<Sink: PayloadSink & ~Copyable>(
        for platform: Platform, rotateKeyBy: Instant?, padding: Int?, to json: inout Sink
    ) {
        json.object { json in
            if platform == .ios { json.member("action_category", actionCategory) }
            if number != nil { json.member("alert_record", hasAlertRecord) }
            if platform == .android { json.member("android_channel", androidChannel) }
            json.member("badge", badge.map(Int64.init))
            json.member("body", texts.body)
            json.member("category", name: category)
            json.member("deep_link", deepLink)
            json.member("expires_at", expiresAt)
            json.member("interruption", name: interruption)
            json.member("number", number.map(Int64.init))
            json.member(
                "padding",
                padding.map {
                    String(decoding: [UInt8](repeating: UInt8(ascii: "0"), count: $0), as: UTF8.self)
                })
            json.member("params") { $0.value(params) }
            json.member("privacy", name: privacy)
            json.member("public_body", texts.publicBody)
            json.member("public_title", texts.publicTitle)
            json.member("rotate_key_by", rotateKeyBy)
            json.member("send_id", uuid: send)
            json.member("sent_at", sentAt)
            json.member("sound", sound)
            json.member("thread", thread)
            json.member("title", texts.title)
            json.member("type") { $0.name(type.text) }
            json.member("unsubscribe", unsubscribeLink)
        }
    }
}
