import BundleModel
package import CompliancePolicy
import CanonicalJSON
import GateVocabulary
package import PayloadComposition

/// What a send says to one recipient: its texts in their language.
package final class SendContent: Sendable {
    let type: NotificationType
    private let hasUnsubscribeLink: Bool
    let texts: NotificationTexts
    let constantText: NotificationContent.ConstantText
    let brand: String
    let references: JSONObject
    package let language: LanguageTag

    /// - Parameters:
    ///   - material: Its params must fit the type: composing is asked for only after ``ParamsCheck``.
    ///   - recipientLocale: A BCP 47 tag; used when the send names none, or one without texts.
    ///   - utcOffsetSeconds: Where the recipient's clocks stand, for moments in a text; `nil` prints UTC.
    /// - Returns: `nil` for a type that is not in the registry.
    /// - Throws: When a text cannot be written; the send then has no size and is refused.
    package init?(
        _ material: SendMaterial, recipientLocale: String?, utcOffsetSeconds: @autoclosure () -> Int?,
        under policy: CompiledPolicy
    ) throws(CompositionError) {
        guard let type = policy.type(material.request.type) else { return nil }
        let wishes = [material.locale, recipientLocale]
        // Nearly every recipient reads a locale that the bundle has.
        let first = wishes.lazy.compactMap(\.self).first.flatMap { LanguageTag($0) }
        let isRegistered = first.map { policy.bundle.messages[$0.description] != nil } ?? false
        var candidates = isRegistered ? [first!] : LanguageTag.candidates(wishes)
        let chosen = candidates.first { policy.bundle.messages[$0.description] != nil } ?? .last
        let generic = policy.genericText(type.tier, locale: chosen.description)
        guard let found = policy.texts(type.messageKey, locale: chosen.description) else { return nil }
        // The texts may stand further down the chain. Numbers follow the language of the text they are in, and
        // the region the reader named, when that is of the same language.
        var textLanguage = chosen
        if found.locale != chosen.description {
            textLanguage = LanguageTag(found.locale) ?? .last
            candidates = LanguageTag.candidates(wishes)
        }
        let reading = candidates.first { $0.language == textLanguage.language } ?? textLanguage
        var values = ParamValues(Self.values(of: material.params, as: type.params), in: reading)
        if values.hasMoment { values.utcOffsetSeconds = utcOffsetSeconds() }
        self.type = type
        hasUnsubscribeLink = policy.category(type.category).hasUnsubscribeLink
        texts = try found.texts.filled(with: values)
        brand = policy.bundle.brand
        constantText = .init(title: generic.title, body: generic.body)
        references = material.params.filtered { type.params[$0.key]?.kind == .uuid }
        language = reading
    }

    private static func values(
        of params: JSONObject, as schemas: [String: ParamSchema]
    ) -> [(name: String, value: ParamValue)] {
        var values: [(name: String, value: ParamValue)] = []
        values.reserveCapacity(params.count)
        for (name, value) in params {
            guard let schema = schemas[name] else { continue }
            switch (schema.kind, value) {
            case (.money, .object(let money)):
                guard let minor = money["minor"]?.integerValue, let currency = money["currency"]?.stringValue
                else {
                    continue
                }
                values.append((name, .money(minor: minor, currency: currency)))
            case (.totals, .array(let amounts)):
                values.append((name, .totals(amounts.compactMap { Self.amount($0) })))
            case (.timestamp, .string(let text)):
                guard let moment = Instant(rfc3339: text) else { continue }
                values.append((name, .moment(moment)))
            case (.integer, .integer(let number)): values.append((name, .integer(number)))
            case (.text(_, let rule), .string(let text)) where rule.allowances.contains(.lineBreaks):
                values.append((name, .paragraphs(text)))
            case (_, .string(let text)): values.append((name, .text(text)))
            default: continue
            }
        }
        return values
    }

    private static func amount(_ value: JSONValue) -> ParamValue.Amount? {
        guard case .object(let money) = value, let minor = money["minor"]?.integerValue,
            let currency = money["currency"]?.stringValue
        else { return nil }
        return ParamValue.Amount(minor: minor, currency: currency)
    }

    /// Everything the notification could say and show at one destination.
    func notification(
        _ material: SendMaterial, message: MessageID, closedCollapse: Tag?, interruption: Interruption,
        privacy: PrivacyLevel?, composedAt: Instant, unsubscribeLink: () -> String?
    ) -> NotificationContent {
        NotificationContent(
            send: material.send, message: message, type: type.id, number: type.alertType,
            hasAlertRecord: type.hasAlertRecord,
            category: type.category, tier: type.tier, brand: brand,
            texts: texts, constantText: constantText, params: material.params, references: references,
            deepLink: material.deepLink ?? type.deepLink, thread: Self.thread(of: type.id), sound: type.sound,
            actionCategory: type.apnsCategory, androidChannel: type.androidChannel, badge: type.badge,
            interruption: interruption, privacy: privacy ?? .generic, sentAt: material.sentAt,
            composedAt: composedAt, expiresAt: material.expiresAt, collapse: material.collapse,
            closedCollapse: closedCollapse,
            unsubscribeLink: hasUnsubscribeLink ? unsubscribeLink() : nil)
    }

    /// The family of a type, `transaction` of `transaction.failed`: what a device stacks together.
    private static func thread(of type: TypeID) -> String {
        String(decoding: type.text.utf8.prefix { $0 != UInt8(ascii: ".") }, as: UTF8.self)
    }
}

extension CompiledPolicy {
    /// The locale in which the bundle has texts for a wish, the nearest one first (RFC 4647 section 3.4).
    package func registeredLocale(for wish: String?) -> String? {
        wish.flatMap { LanguageTag($0) }?.lookupChain.map(\.description).first { bundle.messages[$0] != nil }
    }
}
