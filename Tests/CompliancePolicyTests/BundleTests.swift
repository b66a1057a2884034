import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import Testing

/// One wrong line, and what the reader must say about it.
struct BadLine: Sendable, CustomTestStringConvertible {
    var file: String
    var message: String
    var bundle: TestBundle

    init(_ file: String, _ path: [String], _ value: JSONValue?, _ message: String) {
        self.file = file
        self.message = message
        bundle = .minimal
        bundle.documents[file] = Self.set(bundle.documents[file]!, path[...], value)
    }

    /// What takes more than one line to write, and is wrong by one of them.
    init(_ file: String, _ message: String, after: [(file: String, path: [String], value: JSONValue?)]) {
        self.file = file
        self.message = message
        bundle = .minimal
        for edit in after {
            bundle.documents[edit.file] = Self.set(
                bundle.documents[edit.file] ?? [:], edit.path[...], edit.value)
        }
    }

    var testDescription: String { "\(file): \(message)" }

    private static func set(_ value: JSONValue, _ path: ArraySlice<String>, _ new: JSONValue?) -> JSONValue? {
        guard let key = path.first else { return new }
        if case .array(var elements) = value, let index = Int(key) {
            if index < elements.count {
                elements[index] = set(elements[index], path.dropFirst(), new)!
            } else {
                elements.append(new!)
            }
            return .array(elements)
        }
        var object = value.objectValue ?? JSONObject()
        object[key] = set(object[key] ?? .object(JSONObject()), path.dropFirst(), new)
        return .object(object)
    }
}

extension BadLine {
    static let pages: [BadLine] = [
        BadLine("bundle.yaml", ["version"], 0, "`version` must be 1 to 1000000000"),
        BadLine("bundle.yaml", ["version"], "1", "`version` must be a whole number, and is a text"),
        BadLine("bundle.yaml", ["effective_from"], "2026-02-30", "must be a date"),
        BadLine("bundle.yaml", ["sender"], nil, "goes by e-mail with a way out"),
        BadLine("bundle.yaml", ["sender", "postal_address"], nil, "lacks `postal_address`"),
        BadLine("bundle.yaml", ["sender", "name"], "https://evil.example", "no link"),
        BadLine("messages/en.yaml", ["unsubscribe"], nil, "a link that needs words before it"),
        BadLine("messages/nb.yaml", ["unsubscribe"], nil, "a link that needs words before it"),
        BadLine("messages/en.yaml", ["unsubscribe"], "Hi {name}:", "names a param"),
        BadLine("bundle.yaml", ["owner"], "me", "has `owner`, and nothing of this name is known here"),
        BadLine("bundle.yaml", ["files"], ["types/none.yaml"], "lists `types/none.yaml`, which is missing"),

        BadLine("bundle.yaml", ["languages"], ["first": "de"], "leads to `de`, which has no texts"),
        BadLine("bundle.yaml", ["languages"], ["also_read": ["da": "nb"]], "lacks `first`"),
        BadLine("bundle.yaml", ["languages"], ["first": "Norsk"], "no language tag"),
        BadLine(
            "bundle.yaml", ["languages"], ["first": "nb", "also_read": ["hr": "bs"]],
            "leads to `bs`, which has no texts"),
        BadLine(
            "bundle.yaml", ["languages"], ["first": "nb", "also_read": ["nb": "en", "en": "nb"]],
            "leads back to `nb`|leads back to `en`"),
        BadLine(
            "bundle.yaml", ["languages"], ["first": "nb", "also_read": ["DA": "nb"]], "no language tag"),

        BadLine("categories.yaml", ["marketing", "default"], "on", "must be \"off\""),
        BadLine("categories.yaml", ["marketing", "default"], true, "and is true or false"),
        BadLine("categories.yaml", ["marketing", "minors"], "allow", "a minor gets no marketing"),
        BadLine("categories.yaml", ["social", "unsubscribe_link"], false, "one-tap way out"),
        BadLine(
            "categories.yaml", ["marketing", "permission", "push", "other"], "opt_out", "without an opt-in"),
        BadLine(
            "categories.yaml", ["marketing", "permission", "sms", "gdpr"], "opt_in_or_existing_customer",
            "outside e-mail"),
        BadLine(
            "categories.yaml", ["marketing", "permission", "email", "other"], "opt_in_or_existing_customer",
            "outside e-mail"),
        BadLine("categories.yaml", ["social", "permission", "email", "gdpr"], nil, "lacks `gdpr`"),
        BadLine("categories.yaml", ["security", "default"], "off", "must be \"on\""),
        BadLine("categories.yaml", ["security", "switch_off"], "anyone", "very hard to turn off"),
        BadLine("categories.yaml", ["security", "quiet_hours"], "defer", "bypasses entirely"),
        BadLine("categories.yaml", ["security", "overflow"], "drop", "no cap silences a warning"),
        BadLine("categories.yaml", ["security", "overflow"], "digest", "no cap silences a warning"),
        BadLine("categories.yaml", ["security", "minors"], "refuse", "to be protected"),
        BadLine("categories.yaml", ["social", "law"], nil, "lacks `law`"),
        BadLine("categories.yaml", ["social", "reviewed"], 2026, "must be a date"),
        BadLine("categories.yaml", ["fun"], [:], "has `fun`"),

        BadLine("regions.yaml", ["regions", "NO"], nil, "lacks 1 of the ISO 3166-1 codes: NO"),
        BadLine("regions.yaml", ["regions", "ZZ"], "other", "is not an ISO 3166-1 country"),
        BadLine("regions.yaml", ["regions", "Norway"], "gdpr", "is not an ISO 3166 code"),
        BadLine("regions.yaml", ["regions", "NO"], "strict", "must be one of `gdpr`"),
        BadLine("regions.yaml", ["regions", "GB", "since"], "2026-01-02", "after the bundle takes effect"),
        BadLine("regions.yaml", ["freshness", "ip"], 0, "must be 1 to 3650"),
        BadLine("regions.yaml", ["freshness", "sim"], nil, "lacks `sim`"),
        BadLine("regions.yaml", ["regimes", "other"], nil, "lacks `other`"),
        BadLine("regions.yaml", ["permission_rows", "0", "rule"], "none_needed", "without any permission"),
        BadLine("regions.yaml", ["permission_rows", "2", "from"], nil, "without the day it counts from"),
        BadLine("regions.yaml", ["permission_rows", "1", "categories", "3"], "social", "a second time"),
        BadLine(
            "regions.yaml", "and so does a row above",
            after: [
                ("regions.yaml", ["permission_rows", "0", "from"], "2013-10-16"),
                ("regions.yaml", ["permission_rows", "1", "categories", "3"], "marketing"),
            ]),
        BadLine("regions.yaml", ["permission_rows", "0", "region"], "USA", "is not an ISO 3166 code"),
        BadLine("regions.yaml", ["permission_rows", "0", "categories"], [], "names no category"),

        BadLine(
            "callers.yaml", ["callers", "marketing", "grants", "1"], "consents.write",
            "holds `consents.write`"),
        BadLine(
            "callers.yaml", ["callers", "marketing", "grants", "1"], "policy.activate",
            "holds `policy.activate`"),
        BadLine(
            "callers.yaml", ["callers", "app", "types", "categories"], ["social"], "holds `consents.write`"),
        BadLine("callers.yaml", ["callers", "payments", "grants"], ["send.critical"], "without `send`"),
        BadLine(
            "callers.yaml", ["callers", "payments", "grants"], ["send", "consents.import"],
            "without `consents.write`"),
        BadLine(
            "callers.yaml", ["callers", "payments", "grants"], ["send", "preferences.step_up"],
            "may not assert the source"),
        BadLine("callers.yaml", ["callers", "payments", "types", "only"], ["gift"], "not in the registry"),
        BadLine(
            "callers.yaml", ["callers", "payments", "types", "except"], ["promo"],
            "which is not in the registry|whose category `marketing`"),
        BadLine("callers.yaml", ["callers", "payments", "grants", "1"], "fly", "must be one of `send`"),

        BadLine("critical.yaml", ["allow", "0", "type"], "payment", "only security may be critical"),
        BadLine("critical.yaml", ["allow", "0", "type"], "gift", "not in the registry"),
        BadLine("critical.yaml", ["allow", "0", "callers"], ["ghost"], "who is not in callers.yaml"),
        BadLine("critical.yaml", ["allow", "0", "callers"], ["payments"], "does not hold `send.critical`"),
        BadLine("critical.yaml", ["allow", "0", "callers"], [], "names nobody who may ask"),

        BadLine(
            "channels.yaml", ["sms", "fallback", "marketing"], "own_consent",
            "never replaces a marketing push"),
        BadLine("channels.yaml", ["push", "payload_bytes_max"], 4097, "must be 1 to 4096"),
        BadLine(
            "channels.yaml", ["push", "device_key"], ["max_age_days": 30, "told_before_days": 31],
            "before the key is made"),
        BadLine(
            "channels.yaml", ["push", "device_key"], ["max_age_days": 0, "told_before_days": 1],
            "must be 1 to 3650|before the key is made"),
        BadLine("channels.yaml", ["push", "device_key"], ["max_age_days": 365], "lacks `told_before_days`"),
        BadLine(
            "channels.yaml", ["push", "device_key"],
            ["max_age_days": 365, "told_before_days": 30, "replacement_notice": "gift"],
            "which is not in the registry"),
        BadLine(
            "channels.yaml", ["push", "device_key"],
            ["max_age_days": 365, "told_before_days": 30, "replacement_notice": "promo"],
            "no security type|not sealed|needs params|rules of its own"),
        BadLine("channels.yaml", ["push", "contested_notice"], "nothing", "which is not in the registry"),
        BadLine(
            "channels.yaml", ["push", "contested_notice"], "promo",
            "no security type|needs params|rules of its own"),
        BadLine("channels.yaml", ["sms", "hours", "earliest"], "8:00", "must be a time"),
        BadLine("channels.yaml", ["sms", "hours", "latest"], "08:00", "must start before it ends"),
        BadLine("channels.yaml", ["sms", "hours", "regions", "0"], "ZZ", "no line in regions.yaml"),

        BadLine(
            "limits.yaml", ["types", "gift"], [["count": 1, "window_hours": 1, "source": "x"]],
            "not in the registry"),
        BadLine("limits.yaml", ["types", "promo", "0", "count"], 0, "must be 1 to 1000000"),
        BadLine(
            "limits.yaml", ["types", "promo", "1"], ["count": 1, "window_hours": 1, "source": "x"],
            "has 2 limits"),
        BadLine(
            "limits.yaml", ["categories", "security"], [["count": 1, "window_hours": 1, "source": "x"]],
            "limits nothing"),
        BadLine(
            "limits.yaml", ["types", "notice"], [["count": 1, "window_hours": 1, "source": "x"]],
            "limits a `security` type"),
    ]

    static let types: [BadLine] = [
        BadLine("types/payment.yaml", ["type"], "paid", "the file says `payment`"),
        BadLine("types/payment.yaml", ["channels", "push", "body"], "full", "sensitivity is `high`"),
        BadLine("types/payment.yaml", ["channels", "sms", "body"], "full", "sensitivity is `high`"),
        BadLine("types/payment.yaml", ["channels", "sms", "body"], "sealed", "only push can carry"),
        BadLine(
            "types/statement.yaml", ["channels", "push", "without_key"], "generic",
            "only a sealed body can need"),
        BadLine("types/statement.yaml", ["channels"], [:], "on no channel"),
        BadLine("types/duty.yaml", ["minors"], "refuse", "what they have to be told"),
        BadLine("types/statement.yaml", ["channels", "fax"], ["body": "full"], "has `fax`"),
        BadLine("types/statement.yaml", ["basis", "uk_gdpr"], nil, "lacks `uk_gdpr`"),
        BadLine("types/statement.yaml", ["not_marketing_because"], nil, "lacks `not_marketing_because`"),
        BadLine("types/promo.yaml", ["not_marketing_because"], "Honest.", "is said of a marketing type"),
        BadLine(
            "types/promo.yaml", ["mandatory"], TestBundle.minimal.documents["types/duty.yaml"]!["mandatory"],
            "no law obliges us|is said of a `marketing` type"),
        BadLine(
            "types/comment.yaml", ["mandatory"],
            TestBundle.minimal.documents["types/duty.yaml"]!["mandatory"], "is said of a `social` type"),
        BadLine("types/duty.yaml", ["mandatory", "law"], [], "cites no law"),
        BadLine("types/duty.yaml", ["params"], [:], "does not say which param tells one duty from the next"),
        BadLine(
            "types/duty.yaml", ["params"], ["card_id": "uuid", "event_id": "uuid"],
            "does not say which param tells one duty from the next"),
        BadLine("types/duty.yaml", ["mandatory", "review"], nil, "lacks `review`"),
        BadLine(
            "types/duty.yaml", ["mandatory", "approved"], ["by": "Head of Legal"],
            "a name in a page approves nothing"),
        BadLine("types/duty.yaml", ["mandatory", "passes", "3"], "consent", "must be one of `preferences`"),
        BadLine("types/duty.yaml", ["mandatory", "passes", "3"], "caps", "names one thing twice"),
        BadLine("types/duty.yaml", ["mandatory", "if_unreachable"], "sms", "no body there"),
        BadLine("types/duty.yaml", ["mandatory", "discharged_by"], [], "names nothing"),
        BadLine("types/duty.yaml", ["mandatory", "discharged_by"], nil, "lacks `discharged_by`"),
        BadLine(
            "types/duty.yaml", ["mandatory", "discharged_by"], ["push", "sms", "email"], "no body there"),
        BadLine(
            "types/duty.yaml", ["mandatory", "discharged_by"], ["push"], "which is not in `discharged_by`"),
        BadLine(
            "types/duty.yaml", ["mandatory", "discharged_by"], ["email", "email"], "names one thing twice"),
        BadLine("types/duty.yaml", ["mandatory", "discharge_within", "hours"], 0, "must be 1 to 1440"),
        BadLine("types/payment.yaml", ["dedupe_by"], "order", "no param of the type"),
        BadLine("types/payment.yaml", ["dedupe_scope"], "everybody", "must be one of `caller`, `type`"),
        BadLine(
            "types/payment.yaml", ["dedupe_scope"], nil,
            "does not say whether those of `deputy` and `payments` are the same"),
        BadLine("types/statement.yaml", ["dedupe_scope"], "type", "has `dedupe_scope` and no `dedupe_by`"),
        BadLine("types/payment.yaml", ["params", "id"], ["optional": "uuid"], "which is optional"),
        BadLine("types/payment.yaml", ["params", "id"], "guid", "is no kind of param"),
        BadLine("types/payment.yaml", ["params", "1st"], "uuid", "is no name for a param"),
        BadLine("types/payment.yaml", ["params", "cause"], ["a", "a"], "names one value twice"),
        BadLine(
            "types/payment.yaml", ["params", "note"], ["text": ["bytes_max": 2000]], "must be 1 to 1024"),
        BadLine(
            "types/payment.yaml", ["params", "note"], ["integer": ["min": 5, "max": 1]],
            "a `min` above its `max`"),
        BadLine("types/statement.yaml", ["params"], ["pin": "code"], "a code never leaves a seal"),
        BadLine("types/disabled.yaml", ["disabled_hint"], nil, "without a `disabled_hint`"),
        BadLine("types/payment.yaml", ["disabled_hint"], "No.", "said of an enabled type"),
        BadLine("types/payment.yaml", ["ttl"], ["hours": 673, "counts_from": "due"], "longer than 28 days"),
        BadLine("types/payment.yaml", ["ttl"], ["counts_from": "due"], "exactly one of"),
        BadLine(
            "types/payment.yaml", ["ttl"], ["hours": 1, "minutes": 1, "counts_from": "due"], "exactly one of"),
        BadLine("types/payment.yaml", ["ttl"], nil, "lacks `ttl`"),
        BadLine("types/payment.yaml", ["alert_type"], 12, "must be 1 to 11"),
        BadLine("types/payment.yaml", ["purpose"], "marketing", "the name of a category"),
        BadLine("types/payment.yaml", ["sub_of"], "gift", "no other type of the registry"),
        BadLine("types/sealed_only.yaml", ["sub_of"], "statement", "told by each of them"),
        BadLine("types/payment.yaml", ["alert_record"], true, "without `alert_type`"),
        BadLine(
            "types/payment.yaml", "no `alertId` to look the row up by",
            after: [
                ("types/payment.yaml", ["alert_type"], 3), ("types/payment.yaml", ["alert_record"], true),
            ]),
        BadLine("types/payment.yaml", ["interruption"], "critical", "only a permitted send"),
        BadLine("types/payment.yaml", ["interruption"], "passive", "tells it from every other of its tier"),
        BadLine("types/payment.yaml", ["teir"], "important", "did you mean `tier`?"),
        BadLine("types/payment.yaml", ["means"], " \u{A0} ", "is blank"),
        BadLine("types/duty.yaml", ["mandatory", "law"], [" "], "is blank"),
        BadLine("types/duty.yaml", ["mandatory", "if_unreachable"], "pigeon", "no way to reach somebody"),
        BadLine(
            "types/duty.yaml", ["mandatory", "review"], "2026-01-01", "whose review is due is not agreed to"),
        BadLine("types/duty.yaml", ["mutable_alone"], true, "must not be switched off alone"),
        BadLine("types/notice.yaml", ["mutable_alone"], true, "must not be switched off alone"),
        BadLine(
            "types/duty.yaml", "which two events can share",
            after: [
                ("types/duty.yaml", ["params"], ["contact": ["text": ["bytes_max": 64]]]),
                ("types/duty.yaml", ["dedupe_by"], "contact"),
            ]),
        BadLine("types/payment.yaml", ["deep_link"], "https://bank.example", "no place in the app"),
        BadLine("types/payment.yaml", ["deep_link"], "javascript://alert(1)", "no place in the app"),
        BadLine(
            "types/payment.yaml", "no place in the app",
            after: [
                ("bundle.yaml", ["app_links"], ["drop": "https://app.getdrop.no"]),
                ("types/payment.yaml", ["deep_link"], "https://bank.example/send"),
            ]),
        BadLine(
            "bundle.yaml", ["app_links"], ["drop": "https://app.getdrop.no:443"], "no place on the web"),
        BadLine("bundle.yaml", ["app_links"], ["https": "https://app.getdrop.no"], "no app's scheme"),
        BadLine("types/payment.yaml", ["deep_link"], "drop://tx/{id}", "no place in the app"),
        BadLine("types/payment.yaml", ["deep_link"], "drop:send", "no place in the app"),
        BadLine("types/payment.yaml", ["deep_link_prefixes"], ["drop://a/../b"], "no place in the app"),
        BadLine("types/payment.yaml", ["params", "link"], "url", "a link to anywhere"),
        BadLine(
            "types/payment.yaml", ["params", "link"], ["url": ["under": ["https://"]]], "no place on the web"),
        BadLine("types/payment.yaml", ["params", "link"], ["url": ["under": []]], "names no place"),
        BadLine(
            "types/payment.yaml", ["params", "name"], ["text": ["allows": ["links"]]],
            "must be one of `line_breaks`, `domain_names`, `email_addresses`, `phone_numbers`, `reference`, `abbreviations`"
        ),
        BadLine("types/promo.yaml", ["tier"], "critical", "nobody waits for marketing"),
        BadLine("types/promo.yaml", ["interruption"], "time_sensitive", "breaks through nothing"),
        BadLine(
            "types/promo.yaml", "the alarm of `login`",
            after: [
                ("types/login.yaml", ["sound"], "alarm.caf"), ("types/promo.yaml", ["sound"], "alarm.caf"),
            ]),
        BadLine(
            "types/promo.yaml", "the channel of `login`",
            after: [
                ("types/login.yaml", ["android_channel"], "alarms"),
                ("types/promo.yaml", ["android_channel"], "alarms"),
            ]),
        BadLine("types/help.yaml", ["purpose"], "halp", "which no notice asks for"),
        BadLine("types/help.yaml", ["own_request", "purpose"], "whenever", "which no notice asks for"),
    ]

    static let texts: [BadLine] = [
        BadLine("messages/en.yaml", ["payment"], nil, "lacks texts for `payment`"),
        BadLine("messages/en.yaml", ["gift"], ["title": "a", "body": "b"], "the text of no type"),
        BadLine("messages/en.yaml", ["payment", "body"], "{order}", "no param of `payment`"),
        BadLine("messages/en.yaml", ["payment", "body"], "{amount", "a brace that does not belong"),
        BadLine("messages/en.yaml", ["payment", "body"], "}", "a brace that does not belong"),
        BadLine("messages/en.yaml", ["payment", "body"], "{}", "a brace that does not belong"),
        BadLine("messages/en.yaml", ["payment", "public_body"], "{amount}", "where anybody may see it"),
        BadLine("messages/en.yaml", ["payment", "body"], "See https://{amount}", "must have no link"),
        BadLine("messages/en.yaml", ["payment", "body"], "Pay at {amount}.com", "must have no link"),
        BadLine("messages/en.yaml", ["payment", "title"], "tel:+4790000000", "must have no link"),
        BadLine("messages/en.yaml", ["payment", "body"], "{amount}.{amount}", "must have no link"),
        BadLine("messages/en.yaml", ["payment", "body"], "{amount}{amount}", "without a blank between"),
        BadLine("messages/en.yaml", ["payment", "title"], "One\nand another", "and a title has one"),
        BadLine(
            "messages/en.yaml", "which may have several lines",
            after: [
                ("types/payment.yaml", ["params", "note"], ["text": ["allows": ["line_breaks"]]]),
                ("messages/en.yaml", ["payment", "title"], "{note}"),
            ]),
        BadLine(
            "messages/en.yaml", ["payment", "title"], "b\u{200B}ank", "must have no invisible characters"),
        BadLine(
            "messages/nb.yaml", ["payment", "body"], "100\u{202E}000", "must have no invisible characters"),
        BadLine("messages/en.yaml", ["payment", "body"], ["amount": ["other": "x"]], "which is no integer"),
        BadLine("messages/en.yaml", ["payment", "body"], ["amount": ["one": "x"]], "lacks `other`"),
        BadLine("messages/en.yaml", ["generic", "important"], nil, "lacks `important`"),
        BadLine("messages/en.yaml", ["generic", "important", "body"], "{amount}", "the same for everybody"),
        BadLine(
            "messages/en.yaml", ["generic", "important", "body"], "See https://bank.example", "has a link"),
        BadLine("messages/en.yaml", ["generic", "important", "title"], "Open drop://send", "has a link"),
        BadLine(
            "messages/en.yaml", ["comments_summary", "body"], ["count": ["other": "{count} comments"]],
            "lacks `one`, which en has"),
        BadLine(
            "messages/bs.yaml", "lacks `few`, which bs has",
            after: [
                ("messages/bs.yaml", [], TestBundle.minimal.documents["messages/nb.yaml"]),
                ("messages/bs.yaml", ["comments_summary", "title"], "Komentari"),
                (
                    "messages/bs.yaml", ["comments_summary", "body"],
                    ["count": ["one": "{count} komentar", "other": "{count} komentara"]]
                ),
            ]),
        BadLine(
            "messages/en.yaml", "does not say {contact}",
            after: [("types/duty.yaml", ["params"], ["contact": ["text": ["bytes_max": 64]]])]),
        BadLine(
            "messages/en.yaml", "does not say {pin}",
            after: [("types/sealed_only.yaml", ["params"], ["pin": "code"])]),
        BadLine(
            "messages/en.yaml", ["payments_summary", "body"], "{count}",
            "does not say {totals} where totals is known"),
        BadLine(
            "messages/en.yaml", ["payments_summary", "body"], "{count} {totals}",
            "names {totals}, which is optional, so the text may have a hole"),
        BadLine(
            "messages/en.yaml", ["payments_summary", "body"],
            [["given": ["totals"], "text": "{totals}"], ["text": "{count}"]],
            "does not say {count} where totals is known"),
        BadLine(
            "messages/en.yaml", ["payments_summary", "body"],
            [["given": ["totals"], "text": "{count} {totals}"]], "so there may be nothing to say"),
        BadLine(
            "messages/en.yaml", ["payments_summary", "body"],
            [["text": "{count}"], ["text": "{count}"]], "so no variant after it is ever said"),
        BadLine(
            "messages/en.yaml", ["payments_summary", "body"],
            [
                ["given": ["totals"], "text": "{count} {totals}"],
                ["given": ["totals"], "text": "{count} {totals}"], ["text": "{count}"],
            ], "a second variant for the same params"),
        BadLine(
            "messages/en.yaml", ["payments_summary", "body"],
            [["given": ["count"], "text": "{count}"], ["text": "{count}"]], "which is no optional param"),
        BadLine(
            "messages/en.yaml", ["payments_summary", "body"],
            [["given": ["totals"], "text": [["text": "{count}"]]], ["text": "{count}"]],
            "is a list inside a list of variants"),
        BadLine("messages/en.yaml", ["payments_summary", "body"], [], "is a list of no variants"),
        BadLine(
            "messages/en.yaml", ["payments_summary", "body"],
            [["text": "{count}", "with": ["totals"]]], "has `with`"),
        BadLine("limits.yaml", ["everything", "0", "count"], 0, "must be 1 to 1000000"),
        BadLine("limits.yaml", ["everything", "0", "window_hours"], 745, "must be 1 to 744"),
        BadLine("limits.yaml", ["everything", "0", "source"], nil, "lacks `source`"),
        BadLine("limits.yaml", ["everything"], [], "has no limit"),
        BadLine(
            "limits.yaml", ["everything"],
            [
                ["count": 1, "window_hours": 1, "source": "a"],
                ["count": 2, "window_hours": 2, "source": "a"],
            ], "has 2 limits, and one is supported"),
        BadLine(
            "limits.yaml", ["categories", "social"], [["count": 21, "window_hours": 1, "source": "a"]],
            "lets through more than `everything` does"),
        BadLine(
            "limits.yaml", ["tiers"], ["critical": [["count": 1, "window_hours": 1, "source": "a"]]],
            "limits the highest tier"),
        BadLine(
            "limits.yaml", ["tiers"], ["urgent": [["count": 1, "window_hours": 1, "source": "a"]]],
            "has `urgent`"),
        BadLine("types/payment.yaml", ["overflow"], "later", "must be one of"),
        BadLine("types/payment.yaml", ["overflow"], "digest", "says what its category says"),
        BadLine("types/notice.yaml", ["overflow"], "drop", "no cap silences a warning"),
        BadLine("types/comment.yaml", ["overflow"], "allow", "nobody has to have"),
        BadLine(
            "limits.yaml", "so it limits nothing", after: [("types/payment.yaml", ["overflow"], "allow")]),
        BadLine("types/payment.yaml", ["summary"], "statement", "whose params are not those of a summary"),
        BadLine("types/payment.yaml", ["summary"], "comments_summary", "disabled or of another category"),
        BadLine("types/payment.yaml", ["summary"], "nothing", "must name the type that tells"),
        BadLine(
            "types/promo.yaml", ["summary"], "payments_summary", "is said of a type that is not gathered"),
        BadLine("types/promo.yaml", ["overflow"], "digest", "must name the type that tells"),
        BadLine("messages/nb.yaml", ["fallback"], "da", "which has no file"),
        BadLine("messages/nb.yaml", ["fallback"], "nb", "leads back to `nb`"),

        BadLine(
            "callers.yaml", ["callers", "app", "grants"], ["trail.read", "policy.activate"],
            "holds `trail.read` together with `policy.activate`"),
        BadLine(
            "callers.yaml", ["callers", "app", "grants"], ["trail.read", "subjects.erase"],
            "holds `trail.read` together with `subjects.erase`"),
        BadLine(
            "callers.yaml", ["callers", "app", "grants"], ["keys.rotate", "preferences.write"],
            "holds `keys.rotate` together with `preferences.write`"),
        BadLine(
            "callers.yaml", ["callers", "marketing", "grants"], ["send", "subjects.read"],
            "may send marketing or social types and holds `subjects.read`"),
        BadLine("notices.yaml", ["notices", "promo"], nil, "does not say what the notice `promo` asks for"),
        BadLine(
            "notices.yaml", ["notices", "promo"], ["asks_for": [], "basis": "b"],
            "asks for nothing"),
        BadLine("notices.yaml", ["notices", "promo", "basis"], nil, "lacks `basis`"),
        BadLine("notices.yaml", ["notices", "promo", "methods"], [], "can be agreed to in no way"),
        BadLine(
            "notices.yaml", ["notices", "promo", "methods"], ["in_app_toggle", "written_consent"],
            "names `written_consent` beside other ways to agree"),
        BadLine(
            "notices.yaml", ["notices", "promo", "methods"], ["existing_customer"],
            "names `existing_customer`, which permits marketing by email and nothing else"),
        BadLine(
            "notices.yaml", ["notices", "promo"], ["asks_for": ["marketing", "social"], "basis": "b"],
            "together with something else"),
        BadLine(
            "notices.yaml", ["notices", "gone"], ["asks_for": ["social"], "basis": "b"],
            "is no notice of this bundle"),
        BadLine(
            "notices.yaml", ["notices", "help", "asks_for"], ["help", "help_any_time"],
            "asks for `help` together with something else"),
        BadLine(
            "notices.yaml", ["notices", "promo", "asks_for"], ["help"], "is not the notice of that name"),
        BadLine(
            "notices.yaml", ["notices", "help_any_time", "asks_for"], ["social"],
            "bears the name of the purpose `help_any_time`"),
        BadLine(
            "notices.yaml", ["notices", "social"], ["asks_for": ["marketing"], "basis": "b"],
            "bears the name of the purpose `social`"),
        BadLine("notices/promo.1.en.txt", [], "\n\n  \n", "blank"),

        BadLine("cases/first.yaml", ["cases", "0", "given", "facts_of"], "all", "none of that name"),
        BadLine(
            "cases/first.yaml", ["cases", "0", "given", "facts"], ["weather": "fine"], "do not read as facts"),
        BadLine("cases/first.yaml", ["cases", "0", "given", "without"], ["weather"], "is no fact"),
        BadLine("cases/first.yaml", ["cases", "0", "given", "now"], "noon", "must be a moment"),
        BadLine(
            "cases/first.yaml", ["cases", "0", "then", "outcome"], "forward",
            "expects `forward`, and the reason `fact_missing` gives `reject`"),
        BadLine("cases/first.yaml", ["cases", "0", "then", "detail"], "refused", "cannot have"),
        BadLine("cases/first.yaml", ["cases", "0", "then", "gates"], ["door": "pass"], "has `door`"),
        BadLine(
            "cases/first.yaml", ["cases", "0", "then", "gates"], ["size": "ok"], "must be one of `pass`"),
        BadLine("cases/first.yaml", ["bases", "none"], ["now": "noon"], "must be a moment"),
    ]
}

@Suite struct BundleTests {
    @Test func `the small bundle has no problem`() {
        #expect(TestBundle.minimal.diagnostics == [])
    }

    @Test(arguments: BadLine.pages + BadLine.types + BadLine.texts)
    func `a wrong line is told with its file and what to do`(line: BadLine) {
        let diagnostics = line.bundle.diagnostics
        let wanted = line.message.split(separator: "|").map(String.init)
        #expect(
            diagnostics.contains { diagnostic in
                diagnostic.file == line.file
                    && wanted.contains { (diagnostic.message + " " + (diagnostic.hint ?? "")).contains($0) }
            }
                || line.file == "messages/en.yaml"
                    && diagnostics.contains { $0.message.contains(line.message) },
            "\(diagnostics.map(\.description))")
    }

    @Test func `every problem is told at once, in the order of the files`() {
        var bundle = TestBundle.minimal
        bundle.set("types/payment.yaml", "tier", to: "urgent")
        bundle.set("callers.yaml", "callers", "marketing", "grants", to: ["send", "consents.write"])
        bundle.set("categories.yaml", "marketing", "default", to: "on")
        let files = bundle.diagnostics.map(\.file)
        #expect(files == ["callers.yaml", "categories.yaml", "types/payment.yaml"])
    }

    @Test(arguments: PolicyBundle.pages.sorted())
    func `a page that is missing is one problem, not a hundred`(page: String) {
        var bundle = TestBundle.minimal
        bundle.documents[page] = nil
        let nodes = bundle.nodes
        var documents = nodes
        if page == "bundle.yaml" { documents[page] = nil }
        guard case .failure(let diagnostics) = PolicyBundle.read(documents: documents) else {
            Issue.record("a bundle without \(page) was read")
            return
        }
        #expect(diagnostics.diagnostics.contains { $0.file == page && $0.message.contains("missing") })
    }

    @Test func `a file that is there and not listed is a problem`() {
        var bundle = TestBundle.minimal
        let files = bundle.documents.keys.filter { $0 != "bundle.yaml" && $0 != "types/promo.yaml" }
        bundle.set("bundle.yaml", "files", to: .array(files.sorted().map { .string($0) }))
        #expect(bundle.diagnostics.map(\.file) == ["types/promo.yaml"])
    }

    @Test func `a file of no known kind is a problem`() {
        var bundle = TestBundle.minimal
        bundle.documents["types/extra/promo.yaml"] = [:]
        bundle.documents["notices/promo.txt"] = "May we?"
        #expect(Set(bundle.diagnostics.map(\.file)) == ["types/extra/promo.yaml", "notices/promo.txt"])
    }

    @Test func `two cases of one name are a problem`() {
        var bundle = TestBundle.minimal
        bundle.documents["cases/second.yaml"] = bundle.documents["cases/first.yaml"]
        #expect(bundle.diagnostics.map(\.message) == ["a second case is named `nothing known`"])
    }

    @Test func `a problem names the line it stands on`() throws {
        var nodes = TestBundle.minimal.nodes
        let place = BundleModel.SourceLocation(file: "categories.yaml", line: 12, column: 5)
        nodes["categories.yaml"] = try #require(nodes["categories.yaml"]).locating(
            ["marketing", "default"], at: place, value: .text("on"))
        guard case .failure(let diagnostics) = PolicyBundle.read(documents: nodes) else {
            Issue.record("marketing on by default was read")
            return
        }
        let diagnostic = try #require(diagnostics.diagnostics.first)
        #expect(diagnostic.line == 12)
        #expect(diagnostic.description.hasPrefix("categories.yaml:12:5: "))
    }

    @Test func `an archived bundle is the same bundle`() throws {
        let bundle = try TestBundle.minimal.read().get()
        let archive = try CanonicalJSON.readCanonical(bundle.canonicalJSON, limits: .document)
        let again = try PolicyBundle.read(archive: archive).get()
        #expect(again.digest == bundle.digest)
        #expect(again.canonicalJSON == bundle.canonicalJSON)
        #expect(bundle.digest.text.utf8.count == 64)
    }

    @Test func `an archive is read by what it was, not by what is checked today`() throws {
        // Given up since, and checked only since.
        let old = TestBundle.minimal
            .setting("channels.yaml", "sms", "revocation", "revoke_all_from", to: "2027-01-31")
            .setting("categories.yaml", "marketing", "default", to: "on")
        guard case .failure = old.read() else {
            Issue.record("an author is told of neither")
            return
        }
        let canonical = PolicyBundle.canonicalForm(of: old.nodes)
        let archive = try CanonicalJSON.readCanonical(canonical, limits: .document)
        let again = try PolicyBundle.read(archive: archive).get()
        #expect(again.digest == PolicyBundle.digest(of: old.nodes))
        #expect(again.categories[.marketing]?.isOnByDefault == true)
    }

    @Test func `an archive that is no bundle is refused, however odd its paths`() {
        let archives: [JSONValue] = [
            [], [:], ["caf\u{E9}": 1, "cafe\u{301}": 2], ["../../etc/passwd": "root"],
        ]
        for archive in archives {
            guard case .failure = PolicyBundle.read(archive: archive) else {
                Issue.record("\(archive) was read")
                return
            }
        }
    }

    @Test func `one letter makes another digest`() throws {
        let bundle = try TestBundle.minimal.read().get()
        let other = try TestBundle.minimal.setting("bundle.yaml", "name", to: "tests").read().get()
        #expect(other.digest != bundle.digest)
    }

    @Test func `a notice is known by the digest of its bytes`() throws {
        let policy = try TestBundle.minimal.compile()
        let notice = policy.notice(Notice.Key(id: "promo", version: "1", language: "en"))
        // printf 'May we write to you about offers?\n' | sha256sum
        #expect(notice?.sha256 == "382b7cdfd100b21990aa1b84122953a91bc4d58879aa78d051efe205a99ad9b8")
        #expect(policy.notice(Notice.Key(id: "promo", version: "2", language: "en")) == nil)
    }
}

extension PolicyNode {
    /// The same tree with another value, which has a place, at `path`.
    fileprivate func locating(_ path: [String], at place: BundleModel.SourceLocation, value new: Value)
        -> PolicyNode
    {
        guard let key = path.first, case .mapping(var members) = value,
            let index = members.firstIndex(where: { $0.key == key })
        else { return PolicyNode(new, at: place) }
        members[index].value = members[index].value.locating(Array(path.dropFirst()), at: place, value: new)
        if path.count == 1 { members[index].keyLocation = place }
        return PolicyNode(.mapping(members), at: location)
    }
}
