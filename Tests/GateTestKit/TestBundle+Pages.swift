import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary

extension TestBundle {
    static var pages: [String: JSONValue] {
        [
            "bundle.yaml": [
                "name": "test", "version": 1, "effective_from": "2026-01-01", "brand": "Test",
                "sender": ["name": "Test Ltd", "postal_address": "1 Test Street, 0150 Oslo, Norway"],
            ],
            "categories.yaml": categories,
            "regions.yaml": regions,
            "callers.yaml": ["callers": callers],
            "critical.yaml": [
                "allow": [rule(["type": "login", "callers": ["security"]])]
            ],
            "channels.yaml": channels,
            "limits.yaml": [
                "everything": [["count": 20, "window_hours": 1, "source": "test"]],
                "categories": ["marketing": [["count": 1, "window_hours": 24, "source": "test"]]],
                "types": [
                    "promo": [["count": 2, "window_hours": 168, "source": "test"]],
                    "payment": [["count": 5, "window_hours": 1, "source": "test"]],
                    "duty": [["count": 3, "window_hours": 1, "source": "test"]],
                    "help": [["count": 3, "window_hours": 1, "source": "test"]],
                ],
            ],
            "messages/en.yaml": messages(all: true),
            "messages/nb.yaml": messages(all: false),
            "reasons/nb.yaml": sentences,
            "notices.yaml": [
                "notices": [
                    "promo": ["asks_for": ["marketing"], "basis": "consent"],
                    "help": ["asks_for": ["help"], "basis": "explicit consent"],
                    "help_any_time": ["asks_for": ["help_any_time"], "basis": "explicit consent"],
                ]
            ],
            "notices/promo.1.en.txt": "May we write to you about offers?\n",
            "notices/help.1.en.txt": "May we help you?\n",
            "notices/help_any_time.1.en.txt": "May we help you at any hour?\n",
            "types/payment.yaml": type(
                "payment", "transactional", "high",
                channels: [
                    "push": ["body": "sealed", "without_key": "generic"], "sms": ["body": "generic"],
                    "email": ["body": "generic"],
                ],
                ["params": ["amount": "money", "id": "uuid"], "dedupe_by": "id", "dedupe_scope": "caller"]),
            "types/sealed_only.yaml": type(
                "sealed_only", "transactional", "high",
                channels: ["push": ["body": "sealed", "without_key": "reject"]]),
            "types/statement.yaml": type(
                "statement", "transactional", "personal", channels: ["push": ["body": "full"]]),
            "types/duty.yaml": type(
                "duty", "transactional", "personal",
                channels: ["push": ["body": "full"], "email": ["body": "full"]],
                [
                    "params": ["id": "uuid"],
                    "mandatory": [
                        "law": "PSD2 Art. 79(1)", "passes": ["preferences", "quiet_hours", "caps"],
                        "must_reach_within": "next business day", "if_unreachable": "email",
                        "discharged_by": ["push", "email"], "discharge_within": ["hours": 24],
                        "review": "2026-12-01",
                    ],
                ]),
            "types/help.yaml": type(
                "help", "transactional", "high",
                channels: ["push": ["body": "sealed", "without_key": "generic"]],
                [
                    "purpose": "help", "minors": "refuse",
                    "own_request": ["purpose": "help_any_time", "passes": ["quiet_hours", "caps"]],
                ]),
            "types/briefing.yaml": type(
                "briefing", "transactional", "personal", channels: ["push": ["body": "full"]],
                ["timing": ["daily": "08:00"]]),
            "types/payments_summary.yaml": type(
                "payments_summary", "transactional", "high",
                channels: ["push": ["body": "sealed", "without_key": "generic"]], ["params": summaryParams]),
            "types/comments_summary.yaml": type(
                "comments_summary", "social", "personal", channels: ["push": ["body": "full"]],
                ["params": summaryParams]),
            "types/comment.yaml": type(
                "comment", "social", "personal",
                channels: ["push": ["body": "full"], "email": ["body": "full"]], ["mutable_alone": true]),
            "types/promo.yaml": type(
                "promo", "marketing", "open",
                channels: ["push": ["body": "full"], "sms": ["body": "full"], "email": ["body": "full"]]),
            "types/login.yaml": type(
                "login", "security", "high",
                channels: [
                    "push": ["body": "sealed", "without_key": "generic"], "sms": ["body": "generic"],
                ], ["tier": "critical"]),
            "types/notice.yaml": type(
                "notice", "security", "personal", channels: ["push": ["body": "full"]]),
            "types/code.yaml": type(
                "code", "security", "high",
                channels: ["push": ["body": "sealed", "without_key": "reject"], "sms": ["body": "full"]],
                ["params": ["code": "code"], "tier": "critical"]),
            "types/disabled.yaml": type(
                "disabled", "transactional", "personal", channels: ["push": ["body": "full"]],
                ["enabled": false, "disabled_hint": "the params are not known yet"]),
            "cases/first.yaml": [
                "bases": ["none": [:]],
                "cases": [
                    [
                        "name": "nothing known",
                        "given": [
                            "caller": "payments", "type": "payment", "now": "2026-03-02T12:00:00Z",
                            "facts_of": "none",
                        ],
                        "then": ["outcome": "reject", "reason": "fact_missing", "detail": "params"],
                    ]
                ],
            ],
        ]
    }

    private static let summaryParams: JSONValue = [
        "count": ["integer": ["min": 1, "max": 1_000_000]], "totals": ["optional": "totals"],
    ]

    /// Adds what every rule says about itself.
    private static func rule(_ object: JSONObject) -> JSONValue {
        var object = object
        object["because"] = "So that a test can tell."
        object["law"] = "none"
        object["reviewed"] = "2026-01-01"
        return .object(object)
    }

    private static func type(
        _ id: String, _ category: String, _ sensitivity: String, channels: JSONValue,
        _ more: JSONObject = [:]
    ) -> JSONValue {
        var object: JSONObject = [
            "type": .string(id), "means": "A type of the tests.", "source": "test",
            "category": .string(category), "sensitivity": .string(sensitivity), "channels": channels,
            "tier": category == "marketing" ? "promotional" : "important",
            "basis": ["gdpr": "consent", "uk_gdpr": "consent", "gdpr_like": "consent", "other": "consent"],
            "ttl": ["hours": 24, "counts_from": "due"],
        ]
        if category != "marketing" { object["not_marketing_because"] = "Names no offer." }
        for (key, value) in more { object[key] = value }
        return .object(object)
    }

    private static func row(
        _ gdpr: String, _ ukGDPR: String, _ gdprLike: String, _ other: String
    ) -> JSONValue {
        [
            "gdpr": .string(gdpr), "uk_gdpr": .string(ukGDPR), "gdpr_like": .string(gdprLike),
            "other": .string(other),
        ]
    }

    private static var categories: JSONValue {
        let none = row("none_needed", "none_needed", "none_needed", "none_needed")
        let optIn = row("opt_in", "opt_in", "opt_in", "opt_in")
        let service = row("none_needed", "none_needed", "none_needed", "express_consent")
        let sale = "opt_in_or_existing_customer"
        func category(
            push: JSONValue, sms: JSONValue, email: JSONValue, _ more: JSONObject
        ) -> JSONValue {
            var object: JSONObject = [
                "means": "A category of the tests.",
                "permission": ["push": push, "sms": sms, "email": email],
                "default": "on", "minors": "allow", "unsubscribe_link": false, "switch_off": "anyone",
            ]
            for (key, value) in more { object[key] = value }
            return rule(object)
        }
        return [
            "transactional": category(
                push: none, sms: service, email: none,
                ["quiet_hours": "defer", "overflow": "digest", "summary": "payments_summary"]),
            "security": category(
                push: none, sms: service, email: none,
                ["quiet_hours": "pass", "overflow": "allow", "switch_off": "step_up"]),
            "social": category(
                push: none, sms: optIn, email: optIn,
                [
                    "quiet_hours": "drop", "overflow": "digest", "summary": "comments_summary",
                    "unsubscribe_link": true,
                ]),
            "marketing": category(
                push: optIn, sms: optIn, email: row("opt_in", sale, "opt_in", "opt_in"),
                [
                    "quiet_hours": "drop", "overflow": "drop", "unsubscribe_link": true, "default": "off",
                    "minors": "refuse", "withheld_from": ["help"],
                ]),
        ]
    }

    private static var regions: JSONValue {
        var map = JSONObject()
        for code in ISOCodes.countries { map[code] = "other" }
        for code in ["NO", "DE", "FR"] { map[code] = "gdpr" }
        map["GB"] = ["regime": "uk_gdpr", "since": "2021-01-01", "because": "Left the Union."]
        map["JE"] = "gdpr_like"
        map["US-CA"] = "gdpr_like"
        var regimes = JSONObject()
        for regime in Regime.allCases { regimes[regime.rawValue] = rule(["means": "A law."]) }
        return [
            "freshness": ["kyc": nil, "user_declared": 365, "device": 90, "sim": 90, "ip": 30],
            "calling_codes": ["+1": "US"],
            "strictest_first": ["gdpr", "uk_gdpr", "gdpr_like", "other"],
            "regimes": .object(regimes),
            "regions": .object(map),
            "permission_rows": [
                rule([
                    "region": "US", "channel": "sms", "categories": ["marketing"], "rule": "written_consent",
                ]),
                rule([
                    "region": "US", "channel": "sms", "categories": ["transactional", "security", "social"],
                    "rule": "express_consent",
                ]),
                rule([
                    "region": "SG", "channel": "email", "categories": ["marketing"], "rule": "opt_out",
                    "from": "2026-02-01",
                ]),
                rule([
                    "region": "NO", "channel": "email", "categories": ["marketing"],
                    "rule": "opt_in_or_existing_customer", "from": "2018-05-25",
                ]),
            ],
            "code_texts": [
                rule(["regions": ["NO", "GB"], "from": "2019-09-14"]),
                rule(["regions": ["US"], "from": "2017-06-22", "until": "2026-02-01"]),
                rule(["regions": ["SG"], "from": "2026-02-01"]),
            ],
        ]
    }

    private static var callers: JSONValue {
        func caller(_ grants: [JSONValue], _ categories: [JSONValue]) -> JSONValue {
            rule([
                "means": "A caller of the tests.", "grants": .array(grants),
                "types": ["categories": .array(categories)],
                "may_assert": ["sources": ["in_app_settings"], "methods": ["in_app_toggle"]],
            ])
        }
        return [
            "marketing": caller(["send"], ["marketing", "social"]),
            "payments": caller(["send"], ["transactional"]),
            "security": caller(["send", "send.critical"], ["security"]),
            "deputy": caller(["send", "send.critical"], ["security", "transactional"]),
            "app": caller(["consents.write", "preferences.write"], []),
        ]
    }

    private static var channels: JSONValue {
        [
            "push": rule(["payload_bytes_max": 4096]),
            "sms": rule([
                "payload_bytes_max": 459,
                "fallback": ["marketing": "forbidden", "others": "own_consent"],
                "hours": rule([
                    "earliest": "08:00", "latest": "21:00", "categories": ["marketing"], "regions": ["US"],
                    "calling_codes": ["+1"], "zones": ["America/New_York", "Pacific/Honolulu"],
                ]),
                "revocation": rule([
                    "honoured_within_business_days": 10, "confirmation_within_minutes": 5,
                    "words": ["en": ["stop", "quit"]],
                ]),
            ]),
            "email": rule(["payload_bytes_max": 32_768]),
        ]
    }

    /// Norwegian that reads like English, marked at the end.
    private static var sentences: JSONValue {
        var page: JSONObject = ["months": .array(Sentences.english.months.map { .string($0) })]
        for sentence in Sentence.all {
            page = adding(.string("\(sentence.english) (nb)"), at: sentence.path[...], to: page)
        }
        return .object(page)
    }

    private static func adding(
        _ value: JSONValue, at path: ArraySlice<String>, to page: JSONObject
    ) -> JSONObject {
        var page = page
        guard let key = path.first else { return page }
        page[key] =
            path.count == 1
            ? value : .object(adding(value, at: path.dropFirst(), to: page[key]?.objectValue ?? JSONObject()))
        return page
    }

    private static func messages(all: Bool) -> JSONValue {
        var page = JSONObject()
        var generic = JSONObject()
        for tier in Tier.allCases {
            generic[tier.rawValue] = ["title": .string(all ? "News" : "Nytt"), "body": "…"]
        }
        page["generic"] = .object(generic)
        page["unsubscribe"] = all ? "To stop these e-mails:" : "Stopp disse e-postene:"
        page["payment"] = ["title": .string(all ? "Sent" : "Sendt"), "body": "{amount}"]
        guard all else { return .object(page) }
        for id in [
            "sealed_only", "statement", "duty", "help", "comment", "promo", "login", "notice", "disabled",
            "briefing", "payments_summary", "comments_summary",
        ] {
            page[id] = ["title": .string(id), "body": "Look."]
        }
        page["code"] = ["title": "code", "body": "{code}"]
        let variants: JSONValue = [
            ["given": ["totals"], "text": "{count}, together {totals}"], ["text": "{count}"],
        ]
        for id in ["payments_summary", "comments_summary"] {
            page[id] = ["title": .string(id), "body": variants]
        }
        return .object(page)
    }
}
