import BundleModel
import CanonicalJSON
import GateRecords
import GateSteps
import GateVocabulary
import WireProtocol

extension Route {
    static let importTarget = "/v1/import"

    /// To which every line is a request.
    private static let importPeople = Route(
        "importPeople", .post, importTarget, tag: "Recipients",
        "Bring people over from another system, one per line",
        means:
            "Each line is a person of at most 64 KiB, recorded in one entry and answered by one line in the same order. Each part of a line is taken as its own route takes it, and needs that route's grant, too; one that is refused stands in the answer, and the others are recorded. What is recorded already is not recorded again, so lines may come twice. Framed as `POST /v1/sends/stream`.",
        grants: CallerAct.importPerson.grants,
        also: [
            ConditionalGrant(.recipientsWrite, when: "for a recipient or an address"),
            ConditionalGrant(.devicesWrite, when: "for a device"),
            ConditionalGrant(.consentsWrite, when: "for a consent or a withdrawal"),
            ConditionalGrant(.preferencesWrite, when: "for a preference"),
        ],
        headers: [streamsLive],
        body: .lines(of: ImportLine.shape, example: ("A customer with a phone", ImportLine.example)),
        answers: [
            .init(
                status: 200, means: "One line per line.",
                content: .lines(.either([ImportAnswer.shownShape, Problem.shownShape])))
        ],
        problems: [.tooManyLines]
    ) { _ in
        // The endpoint makes each line a request; what comes here has none.
        throw Problem(.malformedRequest, detail: "an import needs a body of lines")
    }

    static let recipients: [Route] = [
        Route(
            "putRecipient", .put, "/v1/recipients/{user}", .user, tag: "Recipients",
            "Register a person, or replace what is known", grants: CallerAct.putRecipient.grants,
            body: .json(
                Given<RecipientRecord>.self, "A customer in Germany", adding: ("Nothing known yet", [:])),
            answers: [.recorded], problems: [.unknownTimeZone, .assertionNotPermitted]
        ) { request, user in
            .record(.change(user)) { try $0.putRecipient(user, request.body, by: request.caller, at: $1) }
        },
        Route(
            "getRecipient", .get, "/v1/recipients/{user}", .user, tag: "Recipients",
            "All that is held of a person (GDPR Art. 15)", grants: [.subjectsRead], query: LocaleQuery.self,
            answers: [.ok("Everything.", Samples.recipient)],
            problems: [.notFound]
        ) { request, user in .read { try $0.recipient(user, request.query) } },
        Route(
            "deleteRecipient", .delete, "/v1/recipients/{user}", .user, tag: "Recipients",
            "Forget a person (GDPR Art. 17)",
            means:
                "Destroys the key and the mapping that link the trail's pseudonym to the person, and everything held. The trail still verifies; the person is simply unknown from now on.",
            grants: CallerAct.deleteRecipient.grants, answers: [.recorded], problems: [.notFound]
        ) { request, user in .run { $0.erase(user, for: request.caller, answer: $2) } },
        importPeople,
        Route(
            "putDevice", .put, "/v1/recipients/{user}/devices/{device}", .user, .device, tag: "Recipients",
            "Register a device, or replace what is known of it",
            means:
                "A push token belongs to one device of one person: the latest registration takes it, and the device that had it becomes inactive until its app registers again.",
            grants: CallerAct.putDevice.grants, body: .json(Given<DeviceRecord>.self, "An iPhone"),
            answers: [.recorded],
            problems: [.notFound, .tooManyDestinations, .unknownTimeZone, .assertionNotPermitted]
        ) { request, user, device in
            .record(.change(user)) {
                try $0.putDevice(device, request.body, of: user, by: request.caller, at: $1)
            }
        },
        Route(
            "deleteDevice", .delete, "/v1/recipients/{user}/devices/{device}", .user, .device,
            tag: "Recipients", "Remove a device, its token and its keys",
            grants: CallerAct.deleteDevice.grants,
            answers: [.recorded], problems: [.notFound]
        ) { request, user, device in
            .record(.change(user)) { try $0.removeDevice(device, of: user, by: request.caller, at: $1) }
        },
        Route(
            "putSubscriptions", .put, "/v1/recipients/{user}/devices/{device}/subscriptions", .user, .device,
            tag: "Recipients", "Report what the provider has a device subscribed to",
            means:
                "Decides nothing by itself: the next drift audit compares it with what the recipient chose (handbook, \"Drift\").",
            grants: CallerAct.putSubscriptions.grants,
            body: .json(Given<ProviderSubscriptions>.self, "Subscribed to one, not to the other"),
            answers: [.recorded], problems: [.notFound, .eventInFuture, .wrongState]
        ) { request, user, device in
            .record(.change(user)) {
                try $0.putSubscriptions(request.body, at: device, of: user, by: request.caller, at: $1)
            }
        },
        Route(
            "putAddress", .put, "/v1/recipients/{user}/addresses/{address}", .user, .address,
            tag: "Recipients", "Register a phone number or an e-mail address",
            grants: CallerAct.putAddress.grants,
            body: .json(
                Given<AddressRecord>.self, "A phone number",
                adding: ("An e-mail address", ["kind": "email", "value": "customer@example.org"])),
            answers: [.recorded], problems: [.notFound, .tooManyDestinations, .assertionNotPermitted]
        ) { request, user, address in
            .record(.change(user)) {
                try $0.putAddress(address, request.body, of: user, by: request.caller, at: $1)
            }
        },
        Route(
            "deleteAddress", .delete, "/v1/recipients/{user}/addresses/{address}", .user, .address,
            tag: "Recipients", "Remove a phone number or an e-mail address",
            grants: CallerAct.deleteAddress.grants,
            answers: [.recorded], problems: [.notFound]
        ) { request, user, address in
            .record(.change(user)) { try $0.removeAddress(address, of: user, by: request.caller, at: $1) }
        },
        Route(
            "addDeviceKey", .post, "/v1/recipients/{user}/devices/{device}/keys", .user, .device,
            tag: "Device keys", "Register a device's public key",
            means:
                "The key is not used before the device proves that it holds the private half. When the device already has an active key, the old key must answer a challenge too. While one is suspended, a new key comes into use by the security team alone. A public key that was revoked as compromised is not taken again. A device registers four keys a minute at most.",
            grants: CallerAct.addDeviceKey.grants, body: .json(DeviceKeyBody.self, "A P-256 key"),
            answers: [
                .ok("Registered; answer the challenge.", Samples.challenge, status: 201)
            ],
            problems: [.notFound, .invalidPublicKey, .wrongState, .rateLimited, .sealingFailed]
        ) { request, user, device in
            .edit(lane: .general, order: .change(user)) { step, now in
                let answer = try step.addDeviceKey(
                    request.body, to: device, of: user, by: request.caller, at: now)
                return { Answer(status: 201, answer($0)) }
            }
        },
        Route(
            "confirmDeviceKey", .post, "/v1/recipients/{user}/devices/{device}/keys/{key_id}/confirm", .user,
            .device, .deviceKey, tag: "Device keys", "Prove that the device holds its private key",
            grants: CallerAct.confirmDeviceKey.grants, body: .json(KeyConfirmBody.self, "A proof"),
            answers: [
                .ok(
                    "The key is in use.",
                    KeyChangedAnswer(key: Samples.keyID.hexadecimal, state: "active", trail: Samples.trail))
            ],
            problems: [.notFound, .proofWrong, .challengeExpired, .wrongState]
        ) { request, user, device, key in
            .edit(lane: .general, order: .change(user)) { step, now in
                switch try step.confirmDeviceKey(
                    key, request.body, of: device, user: user, by: request.caller, at: now)
                {
                case .right(let answer): { Answer(answer($0)) }
                case .wrong(let refusal): { _ in refusal.answer }
                }
            }
        },
        Route(
            "listDecisions", .get, "/v1/recipients/{user}/decisions", .user, tag: "Recipients",
            "Why things did and did not arrive", grants: [.subjectsRead], query: DecisionsQuery.self,
            answers: [
                .ok("Decisions.", DecisionsAnswer(rows: [Samples.decision]))
            ],
            problems: [.notFound]
        ) { request, user in .read { try $0.decisions(of: user, request.query) } },
    ]

    /// The routes of a person's consents and preferences.
    static let choices: [Route] = [
        Route(
            "addConsent", .post, "/v1/recipients/{user}/consents", .user, tag: "Consents",
            "Record consent given or refused",
            means:
                "The ledger only grows. The latest `event_time` counts, and a tie counts as withdrawn; a grant that is reported after a withdrawal counts only if it was given after the withdrawal was received. Consent to a category also sets its preference: `user_on` with a yes, `user_off` with a no.",
            grants: CallerAct.addConsent.grants,
            also: [ConditionalGrant(.consentsImport, when: "when `event_time` is more than 24 hours old")],
            body: .json(
                ConsentBody.self, "Opted in to marketing pushes",
                adding: (
                    "Opted in to texts to one number",
                    [
                        "id": "c-2", "purpose": "marketing", "channel": "sms", "address": "a_1",
                        "event_time": "2026-11-20T09:30:00+01:00", "method": "written_consent",
                        "jurisdiction": "US-CA",
                        "notice": [
                            "id": "sms_marketing", "version": "1",
                            "sha256": "2d1f15757a3d3db03fc9f3f809f8534ce5f8be6e1087130718b3e2deb8d0e7ea",
                            "language": "en",
                        ],
                    ]
                )),
            answers: [.recorded],
            problems: [
                .notFound, .idConflict, .unknownNotice, .unknownPurpose, .otherPurpose, .eventInFuture,
                .assertionNotPermitted,
            ]
        ) { request, user in
            // A no must get through a flood, and goes ahead of everything but what its caller changed before.
            .record(.change(user), lane: request.body.state == .refused ? .security : .general) {
                try $0.addConsent(request.body, of: user, by: request.caller, at: $1)
            }
        },
        Route(
            "listConsents", .get, "/v1/recipients/{user}/consents", .user, tag: "Consents",
            "The consent ledger as it stood", grants: [.consentsWrite, .subjectsRead],
            query: ConsentsQuery.self,
            answers: [.ok("The ledger.", Samples.consents)],
            problems: [.notFound]
        ) { request, user in .read { try $0.consents(of: user, request.query) } },
        Route(
            "withdrawConsent", .post, "/v1/recipients/{user}/consents/{consent}/withdraw", .user, .consent,
            tag: "Consents", "Withdraw consent",
            means:
                "Ends the named consent whatever the clocks say: dated before it was given, the withdrawal counts from then, and dated later than now, from now. With `every_channel` or the methods `sms_keyword` and `email_reply` it also switches the category off for everybody else who has the number or mailbox. Removes what waits in the outbox on the strength of it, in the same transaction.",
            grants: CallerAct.withdrawConsent.grants,
            body: .optional(ConsentWithdrawBody.self, "Withdrawn in the app", adding: ("Now", [:])),
            answers: [.recorded], problems: [.notFound, .wrongState, .assertionNotPermitted]
        ) { request, user, consent in
            .record(.change(user), lane: .security) {
                try $0.withdrawConsent(consent, request.body, of: user, by: request.caller, at: $1)
            }
        },
        Route(
            "putPreference", .put, "/v1/recipients/{user}/preferences/{scope}", .user, .scope,
            tag: "Preferences", "Record a choice and where it was made",
            means:
                "`user_off` and `default` of marketing for the account or an address withdraw that consent, and so does `user_off` of any category from an unsubscribe link or without a channel; a device's only mutes the device. From an unsubscribe link at an address, and without a channel, it is said for everybody who has that number or mailbox. Switching on never creates consent.",
            grants: CallerAct.putPreference.grants,
            also: [
                ConditionalGrant(.preferencesStepUp, when: "when `source` is `in_app_step_up`"),
                ConditionalGrant(.preferencesWrite, when: "when `source` is any other"),
            ],
            body: .json(PreferenceBody.self, "Marketing off on one device"), answers: [.recorded],
            problems: [.notFound, .unknownScope, .assertionNotPermitted]
        ) { request, user, scope in
            let (body, caller) = (request.body, request.caller)
            try requireGrants([body.neededGrant], for: request.grants)
            return .record(.change(user), lane: body.storedState.isOff ? .security : .general) {
                try $0.setPreference(body, scope: scope, of: user, by: caller, at: $1)
            }
        },
        Route(
            "putPreferences", .put, "/v1/recipients/{user}/preferences", .user, tag: "Preferences",
            "Record several choices at once, all or none",
            means:
                "As a settings screen saves them. Each choice is judged and recorded as its own route would, in the order of the list; where one is refused, none is recorded, and `detail` says which. What the list does not name stays as it is.",
            grants: CallerAct.putPreference.grants,
            also: [
                ConditionalGrant(
                    .preferencesStepUp, when: "when the `source` of a choice is `in_app_step_up`"),
                ConditionalGrant(.preferencesWrite, when: "when that of a choice is any other"),
            ],
            body: .json(PreferencesBody.self, "Two choices of one screen"),
            answers: [
                .ok("Recorded.", Samples.preferencesRecorded)
            ],
            problems: [.notFound, .unknownScope, .assertionNotPermitted]
        ) { request, user in
            let (body, caller) = (request.body, request.caller)
            try requireGrants(body.neededGrants, for: request.grants)
            let isNo = body.choices.contains { $0.choice.storedState.isOff }
            return .edit(lane: isNo ? .security : .general, order: .change(user)) { step, now in
                let answer = try step.setPreferences(body, of: user, by: caller, at: now)
                return { Answer(answer($0)) }
            }
        },
        Route(
            "listPreferences", .get, "/v1/recipients/{user}/preferences", .user, tag: "Preferences",
            "What was chosen, what it comes to, and why", grants: [.preferencesWrite, .subjectsRead],
            query: LocaleQuery.self,
            answers: [.ok("Every preference.", Samples.preferences)],
            problems: [.notFound]
        ) { request, user in .read { try $0.preferences(of: user, request.query) } },
        Route(
            "addPermissionPrompt", .post, "/v1/recipients/{user}/permission-prompts", .user,
            tag: "Preferences", "Record that the operating system's prompt was shown",
            means: "It can be shown once per device; a second report is 409.",
            grants: CallerAct.addPermissionPrompt.grants,
            body: .json(PermissionPromptBody.self, "Shown and granted"), answers: [.recorded],
            problems: [.notFound, .alreadyPrompted, .eventInFuture]
        ) { request, user in
            .record(.change(user)) {
                try $0.addPermissionPrompt(request.body, of: user, by: request.caller, at: $1)
            }
        },
    ]
}

/// - Parameter needed: By the sources that the choices of a request were made at; all of them.
private func requireGrants(_ needed: [Grant], for held: GrantSet) throws {
    for grant in needed where !held.contains(grant) {
        let sources =
            grant == .preferencesStepUp
            ? "the source `\(PreferenceSource.inAppStepUp.rawValue)` needs"
            : "a source other than `\(PreferenceSource.inAppStepUp.rawValue)` needs"
        throw Problem(.grantMissing, detail: "\(sources) the grant `\(grant.rawValue)`")
    }
}
