import BundleModel
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import GateVocabulary

/// One notification type on one page, for a reader who does not know YAML.
struct TypePage {
    let lines: [String]

    init(_ type: NotificationType, of policy: CompiledPolicy) {
        var lines = [type.id.text, "  \(type.means)", ""]
        func add(_ name: String, _ value: String?) {
            guard let value, !value.isEmpty else { return }
            lines.append("\(name.padding(to: 16))\(value)")
        }
        let category = policy.category(type.category)
        add("category", "\(type.category.rawValue): \(category.means)")
        add("tier", "\(type.tier.rawValue), interrupts as \(type.interruption.rawValue)")
        add("sensitivity", type.sensitivity.rawValue)
        add("source", type.source)
        if !type.isEnabled { add("disabled", type.disabledHint) }
        add("not marketing", type.notMarketingBecause)
        lines.append("")

        var basis = Table("law", "basis", "push needs", "sms needs", "email needs")
        for regime in Regime.allCases {
            func needs(_ channel: Channel) -> String {
                type.body[channel] == .never ? "–" : category.permission[channel][regime].words
            }
            basis.add(regime.rawValue, type.basis[regime], needs(.push), needs(.sms), needs(.email))
        }
        lines += basis.lines
        lines += Self.exceptions(type, policy)
        if let purpose = type.purpose {
            lines.append("and explicit consent to the purpose `\(purpose)`, from an existing customer too")
            add("asked for by", Self.notices(asking: purpose, policy))
        }
        lines.append("")

        for channel in Channel.allCases {
            var text = type.body[channel].words
            if channel == .push, type.body.push == .sealed {
                text +=
                    type.withoutKey == .generic
                    ? "; the constant text for a device without a key"
                    : "; refused for a device without a key"
            }
            if type.isCodeText(on: channel) { text += ", where the account's region allows it" }
            if type.isStatutoryEmail(on: channel) { text += ", whatever was chosen for the lock screen" }
            add(channel.rawValue, text)
        }
        add("lives", "\(Self.duration(type.ttlSeconds)) from \(type.ttlCountsFrom.rawValue)")
        if let timing = type.timing { add("goes out", timing.words) }
        add("quiet hours", category.quietHours.words)
        add("caps", Self.caps(type, policy))
        add("minors", category.refusesMinors || type.refusesMinors ? "never" : "as everybody")
        add("switched off by", category.switchOff == .stepUp ? "a second confirmation only" : "one tap")
        if type.isMutableAlone { add("", "by itself, or with its category") }
        if category.hasUnsubscribeLink { add("way out", "a link in every one") }
        if let rule = type.mandatory {
            add("mandatory", rule.law.joined(separator: "; "))
            add("  passes", rule.passes.map(\.rawValue).joined(separator: ", "))
            add("  must reach", "within \(rule.mustReachWithin), else by \(rule.ifUnreachable)")
            add("  discharged by", rule.dischargedBy.map(\.rawValue).joined(separator: ", "))
            add(
                "  alarm",
                "\(Self.duration(Int64(rule.dischargeWithinHours) * 3_600)) after a send that leaves it owed")
            add("  review", "\(rule.reviewOn); the page needs the signature of `legal`")
        }
        if let rule = type.ownRequest {
            add("at own request", "passes \(rule.passes.map(\.rawValue).joined(separator: ", "))")
            add("  recorded as", "consent to the purpose `\(rule.purpose)`")
        }
        let allowances = policy.bundle.critical.filter { $0.type == type.id }
        for allowance in allowances {
            add("may be critical", "asked by \(allowance.callers.map(\.text).joined(separator: ", "))")
        }
        let senders = policy.bundle.callers.filter {
            $0.value.grants.contains(.send) && $0.value.types.covers(type.id, of: type.category)
        }
        add("sent by", senders.keys.sorted().map(\.text).joined(separator: ", "))
        lines.append("")

        lines.append(type.params.isEmpty ? "no params" : "params")
        for (name, schema) in type.params.sorted(by: { $0.key < $1.key }) {
            lines.append("  \(name.padding(to: 24))\(schema.words)")
        }
        add("for the app", type.appParams.joined(separator: ", "))
        add("dedupe by", type.dedupeBy.map { "\($0), for each \(type.dedupeScope.rawValue)" })
        add("deep link", type.deepLink?.text)
        add("links lie under", type.linkPrefixes.map(\.text).joined(separator: ", "))
        for (locale, messages) in policy.bundle.messages.sorted(by: { $0.key < $1.key }) {
            guard let texts = messages.texts[type.messageKey] else { continue }
            lines.append("text in \(locale)")
            lines.append("  \(texts.title.words)")
            lines.append("  \(texts.body.words)")
        }
        self.lines = lines
    }

    /// The dated rows that hold in place of the table, places of one rule on one line.
    private static func exceptions(_ type: NotificationType, _ policy: CompiledPolicy) -> [String] {
        let rows = policy.bundle.regions.permissionRows.filter { row in
            row.categories.contains(type.category) && type.body[row.channel] != .never
        }
        var lines: [(terms: String, places: [String], from: String)] = []
        for row in rows {
            let terms = "\(row.channel.rawValue) needs \(row.rule.words)"
            let from = row.from.map { " from \($0)" } ?? ""
            if let index = lines.firstIndex(where: { $0.terms == terms && $0.from == from }) {
                lines[index].places.append(row.region.description)
            } else {
                lines.append((terms, [row.region.description], from))
            }
        }
        return lines.map { "in \($0.places.joined(separator: ", ")) \($0.terms)\($0.from)" }
    }

    /// The texts by which a recipient can be asked for it.
    private static func notices(asking purpose: Purpose, _ policy: CompiledPolicy) -> String {
        policy.bundle.noticeScopes.filter { $0.value.purposes.contains(purpose) }.keys.sorted()
            .joined(separator: ", ")
    }

    private static func caps(_ type: NotificationType, _ policy: CompiledPolicy) -> String {
        let bundle = policy.bundle
        func words(_ cap: Cap) -> String { "\(cap.count) in \(duration(cap.windowSeconds))" }
        var parts: [String] = []
        if let cap = bundle.typeCap(of: type) { parts.append("\(words(cap)) of this type") }
        if let cap = bundle.categoryCap(of: type) { parts.append("\(words(cap)) of its category") }
        if let cap = bundle.everythingCap(of: type) { parts.append("\(words(cap)) of everything") }
        if parts.isEmpty { return "none" }
        let told = bundle.summary(of: type).map { ", told by \($0)" } ?? ""
        return parts.joined(separator: ", ") + "; above: \(bundle.overflow(of: type).rawValue)\(told)"
    }

    /// The largest unit that says it exactly.
    static func duration(_ seconds: Int64) -> String {
        for (unit, length) in [("day", Int64(86_400)), ("hour", 3_600), ("minute", 60)] {
            if seconds >= length, seconds % length == 0 {
                let count = seconds / length
                return count == 1 ? "1 \(unit)" : "\(count) \(unit)s"
            }
        }
        return "\(seconds) seconds"
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String {
        self + String(repeating: " ", count: Swift.max(1, width - count))
    }
}

extension BodyForm {
    fileprivate var words: String {
        switch self {
        case .sealed: "sealed to the device"
        case .generic: "a constant text that tells nothing"
        case .full: "in clear"
        case .never: "never"
        }
    }
}

extension PermissionRule {
    fileprivate var words: String {
        switch self {
        case .noneNeeded: "nothing"
        case .optOut: "no objection"
        case .optInOrExistingCustomer: "opt-in or customer"
        case .optIn: "opt-in"
        case .expressConsent: "express consent"
        case .writtenConsent: "written consent"
        }
    }
}

extension SendTime {
    fileprivate var words: String {
        switch self {
        case .after(let minutes): "\(minutes) minutes after it was asked for"
        case .daily(let minute): "at \(Self.clock(minute)) of the recipient's day"
        case .weekly(let day, let minute):
            "on \(Self.days[day]) at \(Self.clock(minute)) of the recipient's day"
        case .between(let first, let last):
            "at a time of its own between \(Self.clock(first)) and \(Self.clock(last)) of the recipient's day"
        }
    }

    private static let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

    private static func clock(_ minute: Int) -> String {
        let (hours, minutes) = minute.quotientAndRemainder(dividingBy: 60)
        return "\(hours < 10 ? "0" : "")\(hours):\(minutes < 10 ? "0" : "")\(minutes)"
    }
}

extension QuietHoursRule {
    fileprivate var words: String {
        switch self {
        case .drop: "dropped"
        case .defer: "waits until they end"
        case .pass: "passes"
        }
    }
}

extension ParamSchema {
    fileprivate var words: String { kindWords + (isOptional ? ", optional" : "") }

    private var kindWords: String {
        switch kind {
        case .uuid: "a UUID"
        case .totals: "amounts, one per currency"
        case .money: "money: {\"minor\": 500000, \"currency\": \"NOK\"}"
        case .text(let most, let rule): "a text of 1 to \(most) bytes: \(rule.words)"
        case .integer(let least, let most): "a whole number, \(least) to \(most)"
        case .timestamp: "a moment, RFC 3339 in UTC"
        case .country: "a country, ISO 3166-1 alpha-2"
        case .code: "a code of 4 to 8 digits"
        case .url(let places): "a link under \(places.map(\.text).joined(separator: " or "))"
        case .oneOf(let values): "one of \(values.joined(separator: ", "))"
        }
    }
}

extension MessageText {
    fileprivate var words: String {
        switch self {
        case .plain(let template): return template.words
        case .plural(let param, let forms):
            let each = PluralForm.allCases.compactMap { form in
                forms[form].map { "\(form.rawValue): \($0.words)" }
            }
            return "by \(param): " + each.joined(separator: " | ")
        case .variants(let variants):
            return variants.map { variant in
                let when =
                    variant.given.isEmpty ? "otherwise" : "with \(variant.given.joined(separator: ", "))"
                return "\(when): \(variant.text.words)"
            }.joined(separator: " | ")
        }
    }
}

extension MessageTemplate {
    fileprivate var words: String {
        parts.map { part in
            switch part {
            case .text(let text): text
            case .param(let name): "{\(name)}"
            }
        }.joined()
    }
}
