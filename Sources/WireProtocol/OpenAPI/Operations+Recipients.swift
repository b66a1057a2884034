import CanonicalJSON
import GateVocabulary

extension OpenAPIDocument {
    static let recipients: [Operation] = [
        Operation(
            .putRecipient, "Recipients", "Register a person, or replace what is known",
            request: .body(RecipientBody.self, "A customer in Germany").adding("Nothing known yet", [:]),
            answers: [.recorded], problems: [.unknownTimeZone, .assertionNotPermitted]),
        Operation(
            .getRecipient, "Recipients", "All that is held of a person (GDPR Art. 15)",
            answers: [.ok("Everything.", RecipientAnswer.shape, Samples.recipient.json)],
            problems: [.notFound]),
        Operation(
            .deleteRecipient, "Recipients", "Forget a person (GDPR Art. 17)",
            means:
                "Destroys the key and the mapping that link the trail's pseudonym to the person, and everything held. The trail still verifies; the person is simply unknown from now on.",
            answers: [.recorded], problems: [.notFound]),
        Operation(
            .putDevice, "Recipients", "Register a device, or replace what is known of it",
            means:
                "A push token belongs to one device of one person: the latest registration takes it, and the device that had it becomes inactive until its app registers again.",
            request: .body(DeviceBody.self, "An iPhone"),
            answers: [.recorded],
            problems: [.notFound, .tooManyDestinations, .unknownTimeZone, .assertionNotPermitted]),
        Operation(
            .deleteDevice, "Recipients", "Remove a device, its token and its keys",
            answers: [.recorded], problems: [.notFound]),
        Operation(
            .putAddress, "Recipients", "Register a phone number or an e-mail address",
            request: .body(AddressBody.self, "A phone number")
                .adding("An e-mail address", ["kind": "email", "value": "customer@example.org"]),
            answers: [.recorded], problems: [.notFound, .tooManyDestinations, .assertionNotPermitted]),
        Operation(
            .deleteAddress, "Recipients", "Remove a phone number or an e-mail address",
            answers: [.recorded], problems: [.notFound]),
        Operation(
            .addDeviceKey, "Device keys", "Register a device's public key",
            means:
                "The key is not used before the device proves that it holds the private half. When the device already has an active key, the old key must answer a challenge too. While one is suspended, a new key comes into use by the security team alone. A public key that was revoked as compromised is not taken again.",
            request: .body(DeviceKeyBody.self, "A P-256 key"),
            answers: [
                .ok(
                    "Registered; answer the challenge.", KeyChallengeAnswer.shape, Samples.challenge.json,
                    status: 201)
            ],
            problems: [.notFound, .invalidPublicKey, .wrongState, .sealingFailed]),
        Operation(
            .confirmDeviceKey, "Device keys", "Prove that the device holds its private key",
            request: .body(KeyConfirmBody.self, "A proof"),
            answers: [
                .ok(
                    "The key is in use.", KeyChangedAnswer.shape,
                    KeyChangedAnswer(key: Samples.keyID.hexadecimal, state: "active", trail: Samples.trail)
                        .json)
            ],
            problems: [.notFound, .proofWrong, .challengeExpired, .wrongState]),
        Operation(
            .addConsent, "Consents", "Record consent given or refused",
            means:
                "The ledger only grows. The latest `event_time` counts, and a tie counts as withdrawn; a grant that is reported after a withdrawal counts only if it was given after the withdrawal was received. Consent to a category also sets its preference: `user_on` with a yes, `user_off` with a no.",
            request: .body(ConsentBody.self, "Opted in to marketing pushes")
                .adding(
                    "Opted in to texts to one number",
                    [
                        "id": "c-2", "purpose": "marketing", "channel": "sms", "address": "a_1",
                        "event_time": "2026-11-20T09:30:00+01:00", "method": "written_consent",
                        "jurisdiction": "US-CA",
                        "notice": [
                            "id": "promo", "version": "3",
                            "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                            "language": "en",
                        ],
                    ]),
            answers: [.recorded],
            problems: [
                .notFound, .idConflict, .unknownNotice, .unknownPurpose, .otherPurpose, .eventInFuture,
                .assertionNotPermitted,
            ]),
        Operation(
            .listConsents, "Consents", "The consent ledger as it stood",
            query: [
                .query("as_of", .text(.instant), "Events up to this `event_time`."),
                .query("known_at", .text(.instant), "Events the gate had heard of by then."),
            ],
            answers: [.ok("The ledger.", ConsentsAnswer.shape, Samples.consents.json)],
            problems: [.notFound]),
        Operation(
            .withdrawConsent, "Consents", "Withdraw consent",
            means:
                "Ends the named consent whatever the clocks say: dated before it was given, the withdrawal counts from then. Removes what waits in the outbox on the strength of it, in the same transaction.",
            request: .body(ConsentWithdrawBody.self, "Withdrawn in the app").adding("Now", [:]),
            answers: [.recorded], problems: [.notFound, .wrongState, .eventInFuture, .assertionNotPermitted]),
        Operation(
            .putPreference, "Preferences", "Record a choice and where it was made",
            means:
                "`user_off` and `default` of marketing for the account or an address withdraw that consent, and so does `user_off` of any category from an unsubscribe link or without a channel; a device's only mutes the device. Switching on never creates consent.",
            request: .body(PreferenceBody.self, "Marketing off on one device"),
            answers: [.recorded], problems: [.notFound, .unknownScope, .assertionNotPermitted]),
        Operation(
            .listPreferences, "Preferences", "What was chosen, what it comes to, and why",
            answers: [.ok("Every preference.", PreferencesAnswer.shape, Samples.preferences.json)],
            problems: [.notFound]),
        Operation(
            .addPermissionPrompt, "Preferences", "Record that the operating system's prompt was shown",
            means: "It can be shown once per device; a second report is 409.",
            request: .body(PermissionPromptBody.self, "Shown and granted"),
            answers: [.recorded], problems: [.notFound, .alreadyPrompted, .eventInFuture]),
        Operation(
            .listDecisions, "Recipients", "Why things did and did not arrive",
            query: [
                .query(
                    "limit", .integer(1...WireLimits.decisionCountMax),
                    default: .integer(WireLimits.decisionCountDefault), "At most so many, newest first."),
                .query("before", .uuid, "Older ones than this send: the `next` of the page before."),
            ],
            answers: [
                .ok("Decisions.", DecisionsAnswer.shape, DecisionsAnswer(rows: [Samples.decision]).json)
            ],
            problems: [.notFound]),
    ]
}
