package import CanonicalJSON
package import GateVocabulary

extension PluralForm {
    /// The forms that whole numbers take in a language besides ``other``; none where this build does not know.
    ///
    /// - Parameter locale: A BCP 47 tag.
    package static func needed(in locale: String) -> [PluralForm] {
        guard let tag = LanguageTag(locale) else { return [] }
        // Every rule for whole numbers but that for millions, which Romance languages write with `other`, shows below 200.
        let forms = Set((0...200).map { PluralForm(of: $0, in: tag) })
        return allCases.filter { $0 != .other && forms.contains($0) }
    }
}

/// The one text per tier that is true of every notification and so tells nothing.
package struct GenericText: Hashable, Sendable {
    package var title: CountedText
    package var body: CountedText
}

/// One file of `messages/`.
package struct LocaleMessages: Hashable, Sendable {
    /// A BCP 47 tag, from the file's name.
    package var locale: String
    /// Where to look when a text is not here; `en` unless the file says otherwise, `nil` for `en` itself.
    package var fallback: String?
    package var generic: [Tier: GenericText]
    /// What stands before the link that ends an e-mail. Required of every file where a type is sent with one.
    package var unsubscribeWords: String?
    package var texts: [String: MessageTexts]
}

extension LocaleMessages {
    /// The locale every chain ends in.
    package static let lastLocale = LanguageTag.last.description

    init(locale: String, _ reader: NodeReader) {
        self.locale = locale
        let members = reader.members()
        let fallback = members.optional(
            "fallback", "The language of a text that is not here; `en` when unsaid.")?
            .shown(as: .text(.localeOfPage)).text(byteCountMax: LanguageTag.byteCountMax)
        self.fallback = locale == Self.lastLocale ? nil : fallback ?? Self.lastLocale
        generic = [:]
        let tiers = members.required(
            "generic", "The one text per tier that is true of every notification and so tells nothing.")?
            .members()
        for tier in Tier.allCases {
            let row = tiers?.required(tier.rawValue, "Of every type of the tier.")
            guard let text = row?.named("generic_text").members() else { continue }
            func part(_ name: String, byteCountMax: Int, _ means: String) -> String {
                text.required(name, means)?.shown(as: .text(.withoutParams(byteCountMax: byteCountMax)))
                    .text(byteCountMax: byteCountMax) ?? ""
            }
            let title = part("title", byteCountMax: 256, "The first line.")
            let body = part("body", byteCountMax: 1024, "What stands below it.")
            if (title + body).contains("{") {
                text.reader.problem("names a param, and a generic text must be the same for everybody")
            }
            for part in [title, body] {
                guard let violation = MessageTexts.rule.violation(in: part) else { continue }
                text.reader.problem(
                    PlainTextRule.findsLink(in: part)
                        ? "has a link, and a generic text says nothing but that there is something"
                        : violation.replacing("expected", with: "must have"),
                    hint: "the notification opens the app by itself; a link of a type is its `deep_link`")
            }
            generic[tier] = GenericText(title: CountedText(title), body: CountedText(body))
            text.refuseOthers()
        }
        tiers?.refuseOthers()
        let words = members.optional(
            "unsubscribe",
            "What stands before the link that ends an e-mail of a category with `unsubscribe_link`.")?
            .shown(as: .text(.withoutParams(byteCountMax: 256)))
        unsubscribeWords = words?.checkedText(byteCountMax: 256, by: PlainTextRule())
        if let words, let unsubscribeWords {
            if unsubscribeWords.contains("{") {
                words.problem("names a param, and the words are the same for all")
            }
        }
        texts = [:]
        for (key, value) in members.others(.messages) { texts[key] = MessageTexts(value) }
    }
}

extension MessageTexts {
    /// What is written in a bundle keeps the rule that params keep; a longer text has paragraphs.
    package static let rule = PlainTextRule(allowing: [.lineBreaks])

    init(_ reader: NodeReader) {
        let members = reader.members()
        let empty = MessageText.plain(MessageTemplate([]))
        self.init(
            title: members.required("title", "The first line, or a mail's subject.").map { MessageText($0) }
                ?? empty,
            body: members.required("body", "What stands below it.").map { MessageText($0) } ?? empty,
            publicTitle: members.optional(
                "public_title", "The title on a locked screen; the tier's in `generic` when unsaid."
            ).map { MessageText($0) },
            publicBody: members.optional(
                "public_body", "The body on a locked screen; the tier's in `generic` when unsaid."
            ).map { MessageText($0) })
        members.refuseOthers()
    }
}

extension MessageText {
    /// Variants of one text; more would be more than a reader of the page keeps apart.
    private static let variantCountMax = 8

    init(_ reader: NodeReader) {
        self = reader.named("words").oneOf(
            list: { .variants(Self.variants($0)) }, else: { MessageText(one: $0) })
    }

    private static func variants(_ reader: NodeReader) -> [MessageVariant] {
        let reader = reader.named(
            "variants", "The first whose params are all there is said; the last asks for none.")
        let elements = reader.elements(countMin: 1, countMax: variantCountMax)
        var found: [MessageVariant] = []
        for (index, element) in elements.enumerated() {
            let members = element.members()
            let given =
                members.optional("given", "Optional params that are all there.")?.texts() ?? []
            let text = members.required("text", "What is said then.")
            if case .list? = text?.node.value {
                text?.problem("is a list inside a list of variants", hint: "name every param in `given`")
            } else if let text {
                found.append(MessageVariant(given: given, text: MessageText(one: text)))
            }
            if given.namesOneTwice { element.problem("names one param twice in `given`") }
            if given.isEmpty != (index == elements.count - 1) {
                element.problem(
                    given.isEmpty
                        ? "names nothing in `given`, so no variant after it is ever said"
                        : "is the last variant and asks for a param, so there may be nothing to say",
                    hint: "the last variant, and no other, does without `given`")
            }
            if found.dropLast().contains(where: { Set($0.given) == Set(given) }) {
                element.problem("is a second variant for the same params")
            }
            members.refuseOthers()
        }
        if elements.isEmpty { reader.problem("is a list of no variants, so there is nothing to say") }
        return found
    }

    private init(one reader: NodeReader) {
        self = reader.oneOf(
            mapping: { Self.plural($0) }, else: { .plain(Self.template($0)) })
    }

    private static func plural(_ reader: NodeReader) -> MessageText {
        let reader = reader.named("plural", "One text per plural form of an integer param.")
        let all = reader.members().others(.params, shownCount: 1...1)
        guard all.count == 1, let (param, value) = all.first else {
            reader.problem("must name one param to count by, e.g. {count: {one: …, other: …}}")
            return .plain(MessageTemplate([]))
        }
        var forms: [PluralForm: MessageTemplate] = [:]
        let plural = value.members()
        for form in PluralForm.allCases {
            let text =
                form == .other
                ? plural.required(form.rawValue, "For every number without a form of its own.")
                : plural.optional(form.rawValue, "For the numbers of this form (Unicode CLDR).")
            if let text { forms[form] = Self.template(text) }
        }
        plural.refuseOthers()
        return .plural(param: param, forms: forms)
    }

    private static func template(_ reader: NodeReader) -> MessageTemplate {
        let reader = reader.named("line", "Params in braces, e.g. {amount}.")
        guard let template = MessageTemplate(reader.text(byteCountMax: 1024)) else {
            reader.problem("has a brace that does not belong to a place such as {amount}")
            return MessageTemplate([])
        }
        // A word stands for each param, so that `https://{name}`, `{name}.com` and `{name}.{other}` are links as well. It has three
        // letters, because an ending of two letters that no country has makes no link.
        let filled = template.parts.map { part in if case .text(let text) = part { text } else { "xxx" } }
            .joined()
        for case (.param(let name), .param(let next)) in zip(template.parts, template.parts.dropFirst()) {
            reader.problem(
                "has `{\(name)}{\(next)}` without a blank between, which the two could make a link of",
                hint: "write a blank or a word between them")
        }
        if !filled.isEmpty {
            reader.check(
                filled, against: MessageTexts.rule,
                hint: "a place in the app is the type's `deep_link`, one on the web a param of the kind `url`"
            )
        }
        return template
    }
}
