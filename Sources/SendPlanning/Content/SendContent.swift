package import BundleModel
package import CompliancePolicy
import CanonicalJSON
package import GateVocabulary
package import PayloadComposition

/// What a send says to one recipient, and in which language; its texts are filled for the notification that has them.
package struct SendContent: Sendable {
    private let type: NotificationType
    private let params: CheckedParams
    private let locale: LocaleTexts
    private let found: LocaleTexts.Found
    /// Of ``language``, which is made of it where a text needs one: most have no number and no moment.
    private let languageTag: String
    private let utcOffsetSeconds: Int?

    /// - Parameters:
    ///   - params: The material's, as ``ParamsCheck`` judged them.
    ///   - terms: What the policy says of the material's request.
    ///   - recipientLocale: A BCP 47 tag; used when the send names none, or one without texts.
    ///   - utcOffsetSeconds: Where the recipient's clocks stand, for moments in a text; `nil` prints UTC.
    /// - Returns: `nil` for a type that is not in the registry.
    package init?(
        _ material: borrowing SendMaterial, saying params: CheckedParams, under terms: borrowing RequestTerms,
        recipientLocale: String?,
        utcOffsetSeconds: @autoclosure () -> Int?, of policy: CompiledPolicy
    ) {
        guard let type = terms.type else { return nil }
        if let wish = material.locale ?? recipientLocale, let named = policy.texts(in: wish),
            let own = named.texts(under: terms), own.locale == wish,
            named.isLanguage || LanguageTag(wish)?.description == wish
        {
            // Nearly every recipient reads a locale that the bundle has, and has every text in.
            (locale, found, languageTag) = (named, own, wish)
        } else {
            let candidates = policy.languages.candidates(for: [material.locale, recipientLocale])
            let chosen = candidates.first { policy.texts(in: $0.description) != nil } ?? .last
            guard let nearest = policy.texts(in: chosen.description),
                let text = nearest.texts(under: terms)
            else { return nil }
            (locale, found) = (nearest, text)
            // The texts may stand further down the chain. Numbers follow the language of the text they are in, and
            // the region the reader named, when that is of the same language.
            let textLanguage =
                found.locale == chosen.description ? chosen : LanguageTag(found.locale) ?? .last
            let language = candidates.first { $0.language == textLanguage.language } ?? textLanguage
            languageTag = language.description
        }
        self.type = type
        self.params = params
        self.utcOffsetSeconds = type.hasMoment ? utcOffsetSeconds() : nil
    }

    package var language: LanguageTag { LanguageTag(languageTag) ?? .last }

    /// Everything the notification could say and show at one destination.
    ///
    /// - Throws: When a text cannot be written; the send then has no size and is refused.
    func notification(
        _ material: borrowing SendMaterial, message: MessageID, closedCollapse: Tag?,
        interruption: Interruption, privacy: PrivacyLevel?, composedAt: Instant,
        unsubscribeLink: () -> CountedText?, rotateKeyBy: Instant?, of policy: CompiledPolicy
    ) throws(CompositionError) -> NotificationContent {
        // A text message and an e-mail have no public texts, nor has a clear push to a reader who wants all shown.
        let isPublic =
            material.request.channel == .push && (type.body.push == .sealed || privacy != .full)
        let texts = try found.filled(
            with: SendParams(
                params: params, kinds: type.paramKinds, languageTag: languageTag,
                utcOffsetSeconds: utcOffsetSeconds, hasPlainNumbers: material.request.channel == .sms),
            isPublic: isPublic)
        let generic = locale.generic(type.tier)
        let link = policy.hasUnsubscribeLink(type) ? unsubscribeLink() : nil
        return NotificationContent(
            send: material.send, message: message, type: type.id, number: type.alertType,
            hasAlertRecord: type.hasAlertRecord,
            category: type.category, tier: type.tier, brand: policy.brand,
            texts: texts, constantText: .init(title: generic.title, body: generic.body),
            params: params.json, referenceNames: type.referenceNames,
            deepLink: material.deepLink.map { CountedText($0) } ?? type.deepLink, thread: type.thread,
            sound: type.sound,
            actionCategory: type.apnsCategory, androidChannel: type.androidChannel, badge: type.badge,
            interruption: interruption, privacy: privacy ?? .generic, sentAt: material.sentAt,
            composedAt: composedAt, expiresAt: material.expiresAt, collapse: material.collapse,
            closedCollapse: closedCollapse,
            unsubscribeLink: link,
            emailFooter: material.request.channel == .email && link != nil ? emailFooter(of: policy) : nil,
            rotateKeyBy: rotateKeyBy)
    }

    private func emailFooter(of policy: CompiledPolicy) -> EmailFooter? {
        guard let words = locale.unsubscribeWords, let sender = policy.bundle.sender else { return nil }
        return EmailFooter(unsubscribeWords: words, sender: "\(sender.name), \(sender.postalAddress)")
    }
}

extension LocaleTexts.Found {
    /// What they say of some params.
    ///
    /// - Parameter isPublic: Whether the texts for a locked screen are asked for.
    package func filled(
        with params: some ParamValues, isPublic: Bool = true
    ) throws(CompositionError) -> NotificationTexts {
        NotificationTexts(
            title: try title.filled(with: params), body: try body.filled(with: params),
            publicTitle: try isPublic ? publicTitle?.filled(with: params) : nil,
            publicBody: try isPublic ? publicBody?.filled(with: params) : nil)
    }
}

/// The params of a send, each read as what its type says it is.
private struct SendParams: ParamValues {
    let params: CheckedParams
    let kinds: [(name: String, kind: ParamSchema.Kind)]
    let languageTag: String
    let utcOffsetSeconds: Int?
    let hasPlainNumbers: Bool

    var language: LanguageTag { LanguageTag(languageTag) ?? .last }

    subscript(name: String) -> ParamValue? {
        if let text = params.text(name) { return .text(text) }
        guard let json = params.json[name] else { return nil }
        for index in kinds.indices where CodeUnits.equal(kinds[index].name, name) {
            return Self.value(json, of: kinds[index].kind)
        }
        return nil
    }

    private static func value(_ json: JSONValue, of kind: ParamSchema.Kind) -> ParamValue? {
        switch (kind, json) {
        case (.money, .object): amount(json).map { .money(minor: $0.minor, currency: $0.currency) }
        case (.totals, .array(let amounts)): .totals(amounts.compactMap { amount($0) })
        case (.timestamp, .string(let text)): Instant(rfc3339: text).map { .moment($0) }
        case (.integer, .integer(let number)): .integer(number)
        // A text is there only as its rule judged it.
        case (.text, _): nil
        case (_, .string(let text)): .literal(text)
        default: nil
        }
    }

    private static func amount(_ value: JSONValue) -> ParamValue.Amount? {
        guard case .object(let money) = value, let minor = money["minor"]?.integerValue,
            let currency = money["currency"]?.stringValue
        else { return nil }
        return ParamValue.Amount(minor: minor, currency: currency)
    }
}

extension CompiledPolicy {
    /// The locale in which the bundle has texts for a wish, the nearest one first; `nil` where its readers read none of the
    /// bundle's, as far as the bundle knows.
    package func registeredLocale(for wish: String?) -> String? {
        languages.readable(of: [wish]).map(\.description).first { bundle.messages[$0] != nil }
    }
}
