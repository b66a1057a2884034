/// What is said of a reason, all in one place: who can change it, and its words.
///
/// Its code and outcome are in ``Reason`` itself. Problem documents, explanations, the handbook's table and `--help` pages
/// read from here; another reason is another case of ``Reason`` and of ``Reason/declaration``.
package struct ReasonDeclaration: Sendable {
    /// What exactly was missing, for a reason that says it.
    package struct Detailed: Sendable {
        package var detail: Detail
        /// A whole sentence, to be read out to the person who asks.
        package var sentence: String
        package var whoCanFix: WhoCanFix
    }

    /// For `title` of a problem document: one sentence without a full stop, the same every time.
    package var title: String
    /// Without a detail: a whole sentence, to be read out to the person who asks.
    package var sentence: String
    /// Completes "it was taken back: …" and "it was given up: …", of a message that waited and was decided again.
    package var withdrawal: String
    /// Who can make the next attempt succeed; never the recipient where the recipient said no.
    package var whoCanFix: WhoCanFix
    /// The details it may carry; empty when the reason says it all.
    package var details: [Detailed]

    fileprivate init(
        _ title: String, _ sentence: String, withdrawal: String, _ whoCanFix: WhoCanFix,
        _ details: [(Detail, String, WhoCanFix?)] = []
    ) {
        self.title = title
        self.sentence = sentence
        self.withdrawal = withdrawal
        self.whoCanFix = whoCanFix
        self.details = details.map { Detailed(detail: $0, sentence: $1, whoCanFix: $2 ?? whoCanFix) }
    }

    /// Of a reason that asks for a consent.
    ///
    /// - Parameters:
    ///   - demand: The first half of the sentence.
    ///   - refusal: The whole sentences of a no, where the law asks for nothing before it: an objection is no missing consent.
    fileprivate init(
        _ title: String, asking demand: String, hasRegions: Bool = true, refusal: [Detail: String] = [:]
    ) {
        let details: [(Detail, String, WhoCanFix)] = [
            (.neverAsked, "the recipient has not given it", .recipient),
            (.refused, "the recipient said no", .nobody),
            (.withdrawn, "it was ended, whether it had been given or not", .nobody),
            (.expired, "the one on record has run out", .recipient),
            (.otherChannel, "the recipient gave it for another channel only", .recipient),
            (
                .otherAddress, "the recipient gave it for another number or address, and not for this one",
                .recipient
            ),
            (
                .regionUnknown,
                "what is on record is not enough where the strictest law counts, for it is not known for certain where the recipient is",
                .producer
            ),
            (.methodInsufficient, "the way it was obtained is not enough here", .recipient),
        ]
        self.init(
            title, "\(demand), and none that is enough is on record.",
            withdrawal: "consent was missing by then, or a no was there", .recipient,
            details.filter { hasRegions || $0.0 != .regionUnknown }.map {
                ($0, refusal[$0] ?? "\(demand), and \($1).", $2)
            })
    }

    /// Of a reason about a device's key.
    ///
    /// - Parameters:
    ///   - sentence: Completes the sentence with what the device has.
    ///   - revoked: The whole sentence of a revoked key, where it is another.
    fileprivate init(
        _ title: String, withdrawal: String, revoked: String? = nil, key sentence: (String) -> String
    ) {
        let none = sentence("no key to open a sealed message with")
        self.init(
            title, none, withdrawal: withdrawal, .recipient,
            [
                (.noKey, none, nil), (.keyUnconfirmed, sentence("a key it has not yet proved to hold"), nil),
                (.keyRevoked, revoked ?? sentence("a key that was revoked"), nil),
            ])
    }
}

extension Reason {
    private static let declarations: [Reason: ReasonDeclaration] = Dictionary(
        uniqueKeysWithValues: allCases.map { ($0, $0.declared) })

    package var declaration: ReasonDeclaration { Self.declarations[self]! }

    package var title: String { declaration.title }

    /// The details this reason may carry; empty when the reason says it all.
    package var details: [Detail] { declaration.details.map(\.detail) }

    /// Whether a gate may give the detail with this reason, or did in an earlier build: what waits for its type's own time was
    /// `quiet_hours_deferred` with `send_time` before there was `scheduled`.
    package func mayCarry(_ detail: Detail) -> Bool {
        details.contains(detail) || (self == .quietHoursDeferred && detail == .sendTime)
    }

    /// Who can make the next attempt succeed; never the recipient where the recipient said no.
    package func whoCanFix(_ detail: Detail?) -> WhoCanFix {
        declaration.details.first { $0.detail == detail }?.whoCanFix ?? declaration.whoCanFix
    }

    private var declared: ReasonDeclaration {
        let notAllowed = "the rules did not allow it any more"
        let otherForm = "it could not go in the form it was made in"
        let uncertain = "and when in doubt it does not send."
        return switch self {
        case .expired:
            ReasonDeclaration(
                "The notification is past its time to live",
                "The notification arrived after the time in which it would have been of use.",
                withdrawal: "it was of no use any more", .producer)
        case .expiresBeforeDue:
            ReasonDeclaration(
                "The notification would expire before it may go out",
                "By the time it could have gone out, the notification would have been of no use any more.",
                withdrawal: "it would have been of no use any more by the time it could go out", .producer)
        case .repeated:
            ReasonDeclaration(
                "The notification tells what was told or acknowledged before",
                "The same news went out before, or is already waiting to.",
                withdrawal: "it had been told before, or the recipient knew by then", .producer,
                [
                    (.alreadySent, "The same news went out before, or is already waiting to.", nil),
                    (
                        .acknowledged,
                        "It did not have to be told any more: the app had said that the recipient knows.", nil
                    ),
                ])
        case .unknownType:
            ReasonDeclaration(
                "The registry has no notification type of this name",
                "The sender named a kind of notification that is not registered.", withdrawal: notAllowed,
                .producer)
        case .typeDisabled:
            ReasonDeclaration(
                "The notification type is disabled",
                "This kind of notification is registered but switched off for everybody.",
                withdrawal: notAllowed, .compliance)
        case .invalidParams:
            ReasonDeclaration(
                "The params do not fit the notification type",
                "What the sender filled in does not fit this kind of notification.", withdrawal: notAllowed,
                .producer)
        case .callerNotPermitted:
            ReasonDeclaration(
                "The caller may not send this type",
                "The service that tried to send it may not send this kind of notification.",
                withdrawal: notAllowed, .security,
                [
                    (
                        .callerUnknown, "The service that tried to send it is not known to the gateway.", nil
                    ),
                    (
                        .typeNotGranted,
                        "The service that tried to send it may not send this kind of notification.", nil
                    ),
                ])
        case .criticalNotPermitted:
            ReasonDeclaration(
                "Critical delivery is not permitted here",
                "The sender wanted to break through Do Not Disturb, and only Security may ask for that.",
                withdrawal: notAllowed, .security,
                [
                    (
                        .notOnAllowList,
                        "The sender wanted to break through Do Not Disturb, and this kind of notification never may.",
                        nil
                    ),
                    (
                        .callerLacksGrant,
                        "The sender wanted to break through Do Not Disturb, and only Security may ask for that.",
                        nil
                    ),
                ])
        case .smsFallbackForbidden:
            ReasonDeclaration(
                "This send may not fall back to SMS",
                "A text message may not replace this kind of notification.", withdrawal: notAllowed,
                .compliance,
                [
                    (
                        .marketing, "A text message never replaces an advertising push notification.",
                        .nobody
                    ),
                    (
                        .fallbackMismatch,
                        "It was to replace an earlier push notification of this sender to this recipient, and none is on record.",
                        .producer
                    ),
                ])
        case .channelNotAllowed:
            ReasonDeclaration(
                "The notification type does not travel on this channel",
                "This kind of notification never travels this way.", withdrawal: notAllowed, .producer,
                [
                    (
                        .region,
                        "Where the recipient's account is, no code is sent by text message.", nil
                    )
                ])
        case .unknownRecipient:
            ReasonDeclaration(
                "The recipient is not registered", "Nobody is registered under the name the sender used.",
                withdrawal: "the device or address was not in use any more", .producer)
        case .noDestination:
            ReasonDeclaration(
                "The recipient has no destination that can take this",
                "The recipient has no device or address on this channel.",
                withdrawal: "the device or address was not in use any more", .recipient,
                [
                    (.noneRegistered, "The recipient has no device or address on this channel.", nil),
                    (
                        .destinationUnknown,
                        "The sender named a device or address the recipient does not have.", nil
                    ),
                    (.destinationInactive, "The device or address is no longer in use.", nil),
                    (
                        .addressUnverified,
                        "Nobody has proved that the number or address is the recipient's.", nil
                    ),
                    (
                        .addressContested,
                        "The number or address was verified elsewhere too, and no earlier; what is confidential goes there again once the recipient verifies it anew.",
                        nil
                    ),
                ])
        case .factMissing:
            ReasonDeclaration(
                "A fact the decision needs is not known",
                "The gateway could not find out something it needs to know, \(uncertain)",
                withdrawal: "the gateway could not find out all it needs to know", .operator,
                [
                    (.now, "what time it was"), (.expiry, "until when the notification is of use"),
                    (.params, "whether the notification was filled in correctly"),
                    (.recipient, "whether the recipient is registered"),
                    (.destination, "whether the device or address is in use"),
                    (.consent, "whether the recipient consented"), (.age, "whether the recipient is of age"),
                    (.region, "where the recipient lives"),
                    (.preferences, "what the recipient has switched on and off"),
                    (.osPermission, "whether the device lets the app show notifications"),
                    (.quietHours, "whether it was inside the recipient's quiet hours"),
                    (.counts, "how many notifications the recipient has had"),
                    (.deviceKey, "whether the device has a key"),
                    (.size, "how large the finished message is"),
                    (.fallback, "which earlier notification it replaces"),
                    (.repetition, "whether the recipient was told of it before"),
                    (.critical, "whether it may break through Do Not Disturb"),
                    (.platform, "what kind of device it is"),
                ].map { ($0, "The gateway could not find out \($1), \(uncertain)", nil) })
        case .noGDPRConsent:
            ReasonDeclaration(
                "The recipient's law asks for consent that is not there",
                asking: "The law where the recipient is asks for consent")
        case .noMarketingOptIn:
            ReasonDeclaration(
                "The recipient has not opted in to marketing", asking: "Advertising needs an opt-in",
                // Advertising by e-mail in the United States needs no opt-in, and both details are an objection there.
                refusal: [
                    .refused: "The recipient said no to advertising.",
                    .withdrawn: "Advertising to the recipient was ended.",
                ])
        case .noSMSConsent:
            ReasonDeclaration(
                "The recipient has not consented to SMS",
                asking: "A text message to this number needs consent")
        case .noEmailConsent:
            ReasonDeclaration(
                "The recipient has not consented to e-mail", asking: "An e-mail to this address needs consent"
            )
        case .noPurposeConsent:
            ReasonDeclaration(
                "The recipient has not given the consent this type needs of its own",
                asking: "This kind of notification needs a consent of its own", hasRegions: false)
        case .minor:
            ReasonDeclaration(
                "The recipient is a minor",
                "The recipient is under age, and this is not sent to minors.",
                withdrawal: "the recipient was not known to be of age any more", .nobody)
        case .pushDisabled:
            ReasonDeclaration(
                "Push is switched off for the recipient",
                "Push notifications are switched off for the recipient.",
                withdrawal: "it was switched off for the recipient", .nobody)
        case .userPreference:
            ReasonDeclaration(
                "This is switched off for the recipient",
                // Read by a producer, too, so it is true of a category that is withheld from a person as well.
                "This category is switched off for the recipient.",
                withdrawal: "it was switched off for the recipient", .nobody,
                [
                    (.accountOff, "This category is switched off for the recipient.", nil),
                    (
                        .destinationOff,
                        "This category is switched off on this device or address.", nil
                    ),
                    (.typeOff, "This kind of notification is switched off for the recipient.", nil),
                ])
        case .blockedAtOSLevel:
            ReasonDeclaration(
                "The device's operating system does not let the app notify",
                "The device's own settings do not let the app show notifications.",
                withdrawal: "the device did not let the app show notifications any more", .recipient,
                [
                    (.denied, "The device's own settings do not let the app show notifications.", .nobody),
                    (
                        .notDetermined,
                        "The app has not asked yet whether it may show notifications on the device.", nil
                    ),
                ])
        case .quietHoursDropped:
            ReasonDeclaration(
                "It is due in the recipient's quiet hours",
                "It was due in quiet hours, and this category is not kept for later.",
                withdrawal: "its time fell in quiet hours", .nobody)
        case .quietHoursZoneMissing:
            ReasonDeclaration(
                "The recipient has quiet hours but no known time zone",
                "The recipient has quiet hours, but the time zone they live in is not known.",
                withdrawal: "the time zone the recipient lives in was not known", .recipient)
        case .quietHoursDeferred:
            ReasonDeclaration(
                "The notification waits for the end of the recipient's quiet hours",
                "It was due in quiet hours and was kept until they end.", withdrawal: otherForm, .nobody,
                [
                    (
                        .zoneUnknown,
                        "The recipient's time zone is not known, and it was kept until quiet hours end wherever they may be.",
                        nil
                    )
                ])
        case .scheduled:
            ReasonDeclaration(
                "The notification waits for the time that its type goes out at",
                "This kind of notification goes out at a time of its own and was kept for it.",
                withdrawal: otherForm, .nobody,
                [
                    (
                        .sendTime,
                        "This kind of notification goes out at a time of its own and was kept for it.", nil
                    )
                ])
        case .frequencyCap:
            ReasonDeclaration(
                "The recipient has had as many of these as the limits allow",
                "The recipient has had as many notifications of this category as the rules allow for now.",
                withdrawal: "the recipient had had as many as the rules allow", .nobody,
                [
                    (
                        .typeCap,
                        "The recipient has had as many notifications of this kind as the rules allow for now.",
                        nil
                    ),
                    (
                        .categoryCap,
                        "The recipient has had as many notifications of this category as the rules allow for now.",
                        nil
                    ),
                    (
                        .everythingCap,
                        "The recipient has had as many notifications of all kinds together as the rules allow for now.",
                        nil
                    ),
                ])
        case .digested:
            ReasonDeclaration(
                "The notification goes into the recipient's next summary",
                "There were so many of this category lately that this one was kept for a summary.",
                withdrawal: otherForm, .nobody,
                [
                    (
                        .typeCap,
                        "There were so many of this kind lately that this one was kept for a summary.", nil
                    ),
                    (
                        .categoryCap,
                        "There were so many of this category lately that this one was kept for a summary.",
                        nil
                    ),
                    (
                        .everythingCap,
                        "There were so many of all kinds together lately that this one was kept for a summary.",
                        nil
                    ),
                ])
        case .noDeviceKey:
            ReasonDeclaration(
                "No device has a key to seal this notification to",
                withdrawal: "the device had no key any more that may be used",
                // A type that also has a text without content gives this sentence, too: its message was made sealed.
                revoked: "It was made to travel sealed, and the device has a key that was revoked."
            ) { "It may travel sealed only, and the device has \($0)." }
        case .genericOnly:
            ReasonDeclaration(
                "Only a generic text goes out, because no device key can be used", withdrawal: otherForm
            ) { "The device has \($0), so only a text without content was passed on." }
        case .payloadTooLarge:
            ReasonDeclaration(
                "The composed notification is larger than its channel takes",
                "The finished message is larger than this way of sending carries.",
                withdrawal: "it was larger than this way of sending carries", .producer)
        case .allowed:
            ReasonDeclaration(
                "The notification goes out",
                "Nothing stood in the way, so the notification was passed on.", withdrawal: otherForm, .nobody
            )
        }
    }
}
