import GateVocabulary

/// What people read, what they are asked, and the cases that hold the rules to account.
extension BundleChecker {
    // MARK: languages

    /// A reader is led to a language only if there are texts in it, and never in a circle.
    func checkLanguages() {
        let (file, languages) = ("bundle.yaml", bundle.languages)
        let known = bundle.messages.keys.sorted().joined(separator: ", ")
        func check(_ tag: LanguageTag, _ path: [String]) {
            guard bundle.messages[tag.description] == nil, bundle.documents[file]?["languages"] != nil else {
                return
            }
            problem(
                file, path, "leads to `\(tag)`, which has no texts",
                hint: "name a language of messages/: \(known)")
        }
        check(languages.first, ["languages", "first"])
        for (from, to) in languages.alsoRead.sorted(by: { $0.key < $1.key }) {
            check(to, ["languages", "also_read", from])
            var seen: Set<String> = [from]
            var next: LanguageTag? = to
            while let tag = next {
                guard seen.insert(tag.description).inserted else {
                    problem(
                        file, ["languages", "also_read", from], "leads back to `\(tag)`",
                        hint: "remove one of the lines of the circle")
                    break
                }
                next = languages.alsoRead[tag.description]
            }
        }
    }

    // MARK: messages/

    func checkMessages() {
        guard let last = bundle.messages[LocaleMessages.lastLocale] else {
            list.add(
                PolicyDiagnostic(
                    file: "messages/\(LocaleMessages.lastLocale).yaml", message: "the file is missing",
                    hint: "every chain of locales ends there"))
            return
        }
        var typesByKey: [String: [NotificationType]] = [:]
        for type in bundle.types.values { typesByKey[type.messageKey, default: []].append(type) }
        for type in bundle.types.values where type.saysItsTexts {
            if last.texts[type.messageKey] == nil {
                list.add(
                    PolicyDiagnostic(
                        file: "messages/\(last.locale).yaml",
                        message: "lacks texts for `\(type.messageKey)`, which types/\(type.id).yaml needs",
                        hint: "every chain of locales ends here"))
            }
        }
        for messages in bundle.messages.values {
            let file = "messages/\(messages.locale).yaml"
            checkChain(of: messages, file)
            for (key, texts) in messages.texts {
                guard let types = typesByKey[key] else {
                    problem(file, [key], "is the text of no type", hint: "name it like the type")
                    continue
                }
                for type in types { check(texts, of: type, file, key) }
                checkPlurals(of: texts, in: messages.locale, file, key)
            }
        }
    }

    /// An e-mail that can be unsubscribed from says so in its own language, and who sent it (``Sender``).
    func checkEmailFooter() {
        let mailed = bundle.types.values.filter {
            $0.body.email != .never && bundle.categories[$0.category]?.hasUnsubscribeLink == true
        }
        guard let type = mailed.map(\.id).min() else { return }
        if bundle.sender == nil {
            problem(
                "bundle.yaml", ["sender"], "is missing, and types/\(type).yaml goes by e-mail with a way out",
                hint: "add `sender: {name: …, postal_address: …}`: the law has both in such an e-mail")
        }
        for messages in bundle.messages.values where messages.unsubscribeWords == nil {
            problem(
                "messages/\(messages.locale).yaml", ["unsubscribe"],
                "is missing, and types/\(type).yaml goes by e-mail with a link that needs words before it",
                hint: "add `unsubscribe: To stop these e-mails, open this link:` in the language of the file")
        }
    }

    /// A param without a use is not asked for: a producer would send it, and a device keep it, for nothing.
    func checkParamUse(of type: NotificationType) {
        let file = "types/\(type.id).yaml"
        // A page of texts that could not be read says nothing of what it uses.
        guard bundle.documents[file] != nil, bundle.messages[LocaleMessages.lastLocale] != nil else { return }
        // The gateway counts what a summary says.
        if bundle.summaries.contains(type.id) { return }
        for name in type.appParams {
            guard let schema = type.params[name] else {
                problem(file, ["used_by", "app"], "names `\(name)`, which is no param of the type")
                continue
            }
            if type.body.push != .sealed, schema.kind != .uuid || type.body.push != .full {
                problem(
                    file, ["used_by", "app"],
                    "names `\(name)`, and no push of the type carries it to the app",
                    hint: "only a sealed body carries every param; one in full carries those that are a uuid")
            }
        }
        var used = Set(type.appParams)
        used.formUnion(bundle.messages.values.compactMap { $0.texts[type.messageKey]?.params }.joined())
        used.formUnion(
            [type.dedupeBy, type.dutyParam, type.hasAlertRecord ? "alertId" : nil].compactMap(\.self))
        used.formUnion(Disclosure.all.filter { $0.type == type.id }.map(\.param))
        // A random reference goes with the push, in full and sealed, so that a tap leads to what it is about.
        let carriesReferences = type.body.push == .sealed || type.body.push == .full
        for (name, schema) in type.params.sorted(by: { $0.key < $1.key })
        where !used.contains(name) && !(carriesReferences && schema.kind == .uuid) {
            problem(
                file, ["params", name], "is used by no text, and by nothing else",
                hint:
                    "leave it out (GDPR Art. 5(1)(c)), say it in messages/, or, where the app shows it, add `used_by: {app: [\(name)]}`"
            )
        }
    }

    private func checkChain(of messages: LocaleMessages, _ file: String) {
        var seen: Set<String> = [messages.locale]
        var next = messages.fallback
        while let locale = next {
            guard seen.insert(locale).inserted else {
                problem(file, ["fallback"], "leads back to `\(locale)`")
                return
            }
            guard let found = bundle.messages[locale] else {
                problem(file, ["fallback"], "leads to `\(locale)`, which has no file")
                return
            }
            next = found.fallback
        }
    }

    private func check(_ texts: MessageTexts, of type: NotificationType, _ file: String, _ key: String) {
        for (name, text, isPublic) in texts.parts {
            if name.hasSuffix("title"), text.templates.contains(where: \.hasLineBreak) {
                problem(file, [key, name], "has several lines, and a title has one")
            }
            for param in text.params.sorted() {
                guard let schema = type.params[param] else {
                    problem(
                        file, [key, name], "names {\(param)}, which is no param of `\(type.id)`",
                        hint: "its params: \(type.params.keys.sorted().joined(separator: ", "))")
                    continue
                }
                if name.hasSuffix("title"), case .text(_, let rule) = schema.kind,
                    rule.allowances.contains(.lineBreaks)
                {
                    problem(
                        file, [key, name],
                        "names {\(param)}, which may have several lines, and a title has one",
                        hint: "say it in the body: a line break in a subject would begin another header")
                }
                if isPublic, type.sensitivity == .high || schema.kind == .code {
                    problem(
                        file, [key, name],
                        "names {\(param)} where anybody may see it, and `\(type.id)` is of high sensitivity")
                }
            }
            for variant in text.asVariants { check(variant, of: type, file, [key, name]) }
        }
        checkCompleteness(texts, of: type, file, key)
        checkSummaryTexts(texts, of: type, file, key)
    }

    /// A text names what is there: a required param, or one that the variant asks for.
    private func check(
        _ variant: MessageVariant, of type: NotificationType, _ file: String, _ path: [String]
    ) {
        for param in variant.given where type.params[param]?.isOptional != true {
            problem(
                file, path, "asks in `given` for {\(param)}, which is no optional param of `\(type.id)`",
                hint: "a required param is always there; leave it out of `given`")
        }
        for param in Set(variant.text.params).sorted() where !variant.given.contains(param) {
            if type.params[param]?.isOptional == true {
                problem(
                    file, path, "names {\(param)}, which is optional, so the text may have a hole",
                    hint:
                        "say it in a variant that asks for it: [{given: [\(param)], text: …}, {text: …}]"
                )
            }
        }
        if case .plural(let param, _) = variant.text, let schema = type.params[param] {
            if case .integer = schema.kind { return }
            problem(file, path, "counts by {\(param)}, which is no integer")
        }
    }

    /// A summary says all that is known of what it stands for, whatever that is.
    private func checkSummaryTexts(
        _ texts: MessageTexts, of type: NotificationType, _ file: String, _ key: String
    ) {
        guard bundle.summaries.contains(type.id) else { return }
        let optional = type.params.filter(\.value.isOptional).keys.sorted()
        let required = type.params.filter { !$0.value.isOptional }.keys.sorted()
        // A summary has two params at most, so these are few.
        let sets = optional.reduce([[String]]([[]])) { sets, name in sets + sets.map { $0 + [name] } }
        for known in sets {
            let said = Set(
                [texts.title, texts.body].flatMap { text in
                    text.chosen { known.contains($0) || required.contains($0) }?.params ?? []
                })
            let missing = (known + required).filter { !said.contains($0) }.sorted()
            guard !missing.isEmpty else { continue }
            problem(
                file, [key, "body"],
                "does not say \(missing.map { "{\($0)}" }.joined(separator: ", ")) where \(known.isEmpty ? "nothing else is known" : "\(known.joined(separator: ", ")) is known")",
                hint: "add a variant: {given: [\(known.joined(separator: ", "))], text: …}")
        }
    }

    /// A form that a language has and a text lacks is a wrong ending under every such number.
    private func checkPlurals(of texts: MessageTexts, in locale: String, _ file: String, _ key: String) {
        for (name, text, _) in texts.parts {
            for variant in text.asVariants {
                guard case .plural(let param, let forms) = variant.text else { continue }
                let missing = PluralForm.needed(in: locale).filter { forms[$0] == nil }
                guard !missing.isEmpty else { continue }
                problem(
                    file, [key, name, param],
                    "lacks \(missing.quoted(\.rawValue)), which \(locale) has",
                    hint: "Unicode CLDR, Language Plural Rules")
            }
        }
    }

    /// What the law demands of a notice, or a code stands for, is worth nothing half said.
    private func checkCompleteness(
        _ texts: MessageTexts, of type: NotificationType, _ file: String, _ key: String
    ) {
        let carriesCode = type.params.values.contains { $0.kind == .code }
        guard type.mandatory != nil || carriesCode, type.saysItsTexts else { return }
        // A text message has no title.
        let isText = type.isCodeText(on: .sms)
        let said = Set((isText ? [] : texts.title.params) + texts.body.params)
        if isText { checkCodeText(texts.body, of: type, file, key) }
        let missing = type.params.filter { name, schema in
            let isSaid =
                switch schema.kind {
                case .text, .money, .code: true
                default: false
                }
            return isSaid && !schema.isOptional && !said.contains(name)
        }
        guard !missing.isEmpty else { return }
        problem(
            file, [key, "body"],
            "does not say \(missing.keys.sorted().map { "{\($0)}" }.joined(separator: ", "))",
            hint: carriesCode
                ? "a code says what it approves (Delegated Regulation (EU) 2018/389 Art. 5(1)(a))"
                : "a notice of law says all of it (e.g. GDPR Art. 34(2)); leave out the param if it need not be said"
        )
    }

    /// A text message says beside its code only what the code approves, and nothing else of the recipient's.
    private func checkCodeText(
        _ body: MessageText, of type: NotificationType, _ file: String, _ key: String
    ) {
        let others = Set(body.params).filter { name in
            switch type.params[name]?.kind {
            case .code, .money, .text: false
            default: true
            }
        }
        guard !others.isEmpty else { return }
        problem(
            file, [key, "body"],
            "names \(others.sorted().map { "{\($0)}" }.joined(separator: ", ")) beside a code that a text message shows to whoever holds the phone",
            hint:
                "a code, what it approves, and no more (GDPR Art. 5(1)(c), Delegated Regulation (EU) 2018/389 Art. 22)"
        )
    }

    // MARK: notices/

    /// A consent is to what its giver read; so every text says what it asks for, and nothing else is taken from it.
    func checkNotices() {
        let file = Notice.purposesPage
        let ids = Set(bundle.notices.keys.map(\.id))
        if !ids.isEmpty, bundle.documents[file] == nil {
            return list.add(
                PolicyDiagnostic(
                    file: file, message: "the file is missing",
                    hint:
                        "it says what each notice of notices/ asks for: `notices: {promo: {asks_for: [marketing], basis: GDPR Art. 6(1)(a)}}`"
                ))
        }
        for id in ids.sorted() where bundle.noticePurposes[id] == nil {
            problem(
                file, ["notices"], "does not say what the notice `\(id)` asks for",
                hint: "add `\(id): {asks_for: […], basis: …}` with a category or a type's `purpose`")
        }
        let marketing = Purpose(GateVocabulary.Category.marketing.rawValue)
        for (id, purposes) in bundle.noticePurposes where purposes.contains(marketing) && purposes.count > 1 {
            problem(
                file, ["notices", id], "asks for marketing together with something else",
                hint: "consent is asked for each purpose apart (GDPR Art. 7(2) and 7(4), recital 43)")
        }
        for (id, scope) in bundle.noticeScopes.sorted(by: { $0.key < $1.key }) {
            checkMethods(of: scope, path: ["notices", id], file)
        }
        checkSpecialPurposes(file)
        for id in bundle.noticePurposes.keys.sorted() where !ids.contains(id) {
            problem(
                file, ["notices", id], "is no notice of this bundle",
                hint: "add notices/\(id).<version>.<language>.txt or remove the line")
        }
    }

    /// What a law ties to a text of its own is taken from no other, and nothing else from that text.
    private func checkMethods(of scope: Notice.Scope, path: [String], _ file: String) {
        let (methods, marketing) = (scope.methods, Purpose(GateVocabulary.Category.marketing.rawValue))
        guard let own = methods.first(where: \.hasNoticeOfItsOwn) else { return }
        if Set(methods).count > 1 {
            problem(
                file, path + ["methods"], "names `\(own.rawValue)` beside other ways to agree",
                hint: "give it a notice that is agreed to in no other way")
        }
        let (channel, law): (Channel, String) =
            own == .existingCustomer
            ? (.email, "ePrivacy Directive 2002/58/EC Art. 13(2)") : (.sms, "47 CFR 64.1200(a)(2) and (f)(9)")
        if scope.channels != [channel] || scope.purposes != [marketing] {
            problem(
                file, path + ["methods"],
                "names `\(own.rawValue)`, which permits marketing by \(channel.rawValue) and nothing else (\(law))",
                hint: "asks_for: [marketing], channels: [\(channel.rawValue)]")
        }
    }

    /// A consent besides the category's is asked for in words of its own, by the notice that bears its name.
    private func checkSpecialPurposes(_ file: String) {
        let alone = "consent is asked for each purpose apart (GDPR Arts. 4(11) and 7(2), recital 43)"
        let categories = Set(GateVocabulary.Category.allCases.map { Purpose($0.rawValue) })
        var special: Set<Purpose> = []
        for type in bundle.types.values.sorted(by: { $0.id < $1.id }) {
            let asked = [
                (["purpose"], type.purpose), (["own_request", "purpose"], type.ownRequest?.purpose),
            ]
            for (path, purpose) in asked {
                guard let purpose, !categories.contains(purpose) else { continue }
                special.insert(purpose)
                guard !bundle.noticePurposes.values.contains(where: { $0.contains(purpose) }) else {
                    continue
                }
                problem(
                    "types/\(type.id).yaml", path, "is `\(purpose)`, which no notice asks for",
                    hint:
                        "add notices/\(purpose).1.en.txt, and what it asks for to \(file); nobody can say yes otherwise"
                )
            }
        }
        let bearers = special.union(categories)
        for (id, purposes) in bundle.noticePurposes.sorted(by: { $0.key < $1.key }) {
            let named = purposes.filter { !categories.contains($0) }
            if !named.isEmpty, purposes.count > 1 {
                problem(
                    file, ["notices", id], "asks for `\(named[0])` together with something else", hint: alone)
            } else if let purpose = named.first, purpose.text != id {
                problem(
                    file, ["notices", id], "asks for `\(purpose)`, and is not the notice of that name",
                    hint: "a consent besides the category's is asked for by the notice that bears its name")
            } else if bearers.contains(Purpose(id)), !purposes.contains(Purpose(id)) {
                problem(
                    file, ["notices", id],
                    "bears the name of the purpose `\(id)` and asks for something else",
                    hint: alone)
            }
        }
    }

    // MARK: cases/

    func checkCases() {
        var seen: Set<String> = []
        for example in bundle.cases where !seen.insert(example.name).inserted {
            list.add(
                PolicyDiagnostic(
                    file: example.file, line: example.line,
                    message: "a second case is named `\(example.name)`"))
        }
    }
}

extension MessageTexts {
    /// Each text under its name on the page.
    fileprivate var parts: [(name: String, text: MessageText, isPublic: Bool)] {
        let parts: [(name: String, text: MessageText?, isPublic: Bool)] = [
            ("title", title, false), ("body", body, false),
            ("public_title", publicTitle, true), ("public_body", publicBody, true),
        ]
        return parts.compactMap { name, text, isPublic in text.map { (name, $0, isPublic) } }
    }
}

extension MessageText {
    /// Itself as the one variant that asks for nothing, or its variants.
    fileprivate var asVariants: [MessageVariant] {
        if case .variants(let variants) = self { return variants }
        return [MessageVariant(given: [], text: self)]
    }
}
