package import CanonicalJSON

/// Everything a decision may look at, for one send to one destination: one consistent snapshot, the
/// time included.
///
/// A closed, typed struct. Every property is optional and `nil` means *not known*, which is
/// different from a known "no": a gate that needs a fact that is not known fails with `fact_missing`, so
/// that losing a fact can never turn a refusal into a send. What is recorded here is what the
/// world said, not what policy makes of it (a region code and its age, not a regime), so that
/// another policy can be asked about the same facts later.
package struct Facts: Hashable, Sendable {
    // MARK: The send

    /// The only clock a rule may see.
    package var now: Instant?
    /// After this moment the notification is worth nothing: arrival plus its time to live.
    package var expiry: Instant?
    /// When the send itself wants to go out; equal to ``now`` for one that is wanted at once.
    package var due: Instant?
    package var params: ParamsFact?
    package var fallback: FallbackFact?
    /// Whether the same event was told before, for a type that declares `dedupe_by`; not looked at otherwise.
    package var repetition: RepetitionFact?

    // MARK: The recipient

    package var recipient: RecipientFact?
    package var age: AgeFact?
    /// An account without a region has ``RegionCode/unknown``, which counts as `gdpr`. `nil` is a lost fact, which
    /// demands what any region demands.
    package var accountRegion: RegionObservation?
    /// Where the recipient's devices were last seen, this destination's among them; one without a region has
    /// ``RegionCode/unknown``. For a text also the place its number belongs to, where `regions.yaml` names one.
    package var deviceRegions: [RegionObservation]?
    package var privacy: PrivacyLevel?

    // MARK: Permission

    /// The newest word on the category's purpose, for this channel and, for SMS and e-mail, this address.
    package var consent: ConsentFact?
    /// The same for the special purpose a type names (`intervention`, `account_information`).
    package var purposeConsent: ConsentFact?
    /// The newest word on the purpose by which a recipient asks to be reached at any hour, for a type that
    /// declares `own_request`. A fact that is not known counts as not asked.
    package var ownRequest: ConsentFact?

    /// Whether the recipient takes part in something their category is withheld from: they gave a consent to one of its
    /// `withheld_from`, on any channel, and it still counts. Not looked at for a category without a `withheld_from`.
    package var withheld: Bool?

    // MARK: What the recipient chose

    /// The master switch for push: `push_enabled` of the recipient.
    package var pushEnabled: Bool?
    package var accountPreference: PreferenceState?
    package var destinationPreference: PreferenceState?
    /// For a type that declares `mutable_alone`; `.default` for every other.
    package var accountTypePreference: PreferenceState?
    package var destinationTypePreference: PreferenceState?
    /// At ``due``, or ``now`` when that is past.
    package var quietHours: QuietHoursFact?

    // MARK: The destination

    package var destination: DestinationFact?
    package var platform: Platform?
    package var osPermission: OSPermission?
    /// Whether the app has the critical-alerts entitlement on this device and the user granted it.
    package var criticalAlerts: Bool?
    package var deviceKey: DeviceKeyFact?
    package var sizes: PayloadSizes?

    // MARK: What went before

    /// Forwards of this type to this recipient inside the type's window, this one not counted.
    package var typeCount: Int?
    /// The same for the category.
    package var categoryCount: Int?
    /// The same for everything that may be silenced, whatever its category: neither security nor the highest tier. `nil`
    /// for a send that no such limit is about.
    package var everythingCount: Int?

    /// Facts of which nothing is known.
    package init() {}
}

/// The names, shapes and meanings of facts, in the trail, in `explain` and in `Policies/cases`.
///
/// The object is flat, its keys are the properties in snake case, an unknown fact is absent, and
/// every moment is an integer of milliseconds. Reading accepts exactly what writing gives: a key that
/// is not known is an error, because a misspelled fact would otherwise look like a missing one.
extension Facts: FieldObject {
    package static let means =
        "Everything a decision may look at. A fact that is absent is unknown, and a gate that needs it refuses with `fact_missing`."
    package static let shape = Shape.named("Facts", .object(objectShape))
    package static var blank: Facts { Facts() }

    /// The one list of facts; what an entry, an outbox row, `explain` and the proof know of them follows from it.
    @inline(__always)
    package static func show<Visitor: FieldVisitor & ~Copyable>(
        to fields: inout Visitor
    ) throws(Visitor.Failure) where Visitor.Object == Facts {
        try fields.optional("account_preference", \.accountPreference, "The account's choice.")
        try fields.optional("account_region", \.accountRegion, "The account's region.")
        try fields.optional(
            "account_type_preference", \.accountTypePreference, "The account's choice on the type alone.")
        try fields.optional("age", \.age, "Adult or minor.")
        try fields.optional("category_count", \.categoryCount, "Forwards of the category in its window.")
        try fields.optional("consent", \.consent, "On the category's purpose.")
        try fields.optional("critical_alerts", \.criticalAlerts, "Whether the device grants critical alerts.")
        try fields.optional("destination", \.destination, "Whether it can be reached.")
        try fields.optional("destination_preference", \.destinationPreference, "The destination's choice.")
        try fields.optional(
            "destination_type_preference", \.destinationTypePreference,
            "The destination's choice on the type alone.")
        try fields.optional("device_key", \.deviceKey, "The device's key.")
        try fields.optional("device_regions", \.deviceRegions, "Where the devices were last seen.")
        try fields.optional("due", \.due, "When the send itself wants to go out.")
        try fields.optional(
            "everything_count", \.everythingCount,
            "Forwards of everything that a limit over all categories counts, in its window.")
        try fields.optional("expiry", \.expiry, "After this the notification is worth nothing.")
        try fields.optional("fallback", \.fallback, "What this send replaces.")
        try fields.optional("now", \.now, "The only clock a rule sees; Unix milliseconds.")
        try fields.optional("os_permission", \.osPermission, "What the OS lets the app do.")
        try fields.optional(
            "own_request", \.ownRequest, "On being reached at any hour, where a type lets one ask for it.")
        try fields.optional("params", \.params, "Whether the params fit the type.")
        try fields.optional("platform", \.platform, "The push service.")
        try fields.optional("privacy", \.privacy, "What a lock screen may show.")
        try fields.optional("purpose_consent", \.purposeConsent, "On the special purpose a type names.")
        try fields.optional("push_enabled", \.pushEnabled, "The recipient's master switch for push.")
        try fields.optional("quiet_hours", \.quietHours, "The quiet hours at the destination.")
        try fields.optional("recipient", \.recipient, "Whether the person is known.")
        try fields.optional(
            "repetition", \.repetition, "Whether it was told before; for a type with `dedupe_by`.")
        try fields.optional("sizes", \.sizes, "Sizes of the composed payload.")
        try fields.optional("type_count", \.typeCount, "Forwards of this type in its window.")
        try fields.optional(
            "withheld", \.withheld, "Whether the person takes part in what the category is withheld from.")
    }

    /// The name of every fact, sorted: what ``removing(_:)`` takes.
    package static let names: [String] = objectShape.members.map(\.name)

    /// - Parameter pointer: Where `json` stands in its document, for the errors.
    package init(json: JSONObject, at pointer: JSONPointer = .root) throws(JSONShapeError) {
        self = try Self.read(field: .object(json), at: pointer)
    }

    /// These facts without one of them, as if it were unknown.
    ///
    /// - Returns: `nil` when no fact has that name.
    package func removing(_ name: String) -> Facts? { taking(name, from: Facts()) }

    /// These facts with one of them as it is in others.
    ///
    /// - Returns: `nil` when no fact has that name.
    package func taking(_ name: String, from others: Facts) -> Facts? {
        var taker = FactTaker(facts: self, others: others, name: name)
        Self.show(to: &taker)
        return taker.isFound ? taker.facts : nil
    }

    /// A recipient has at most 20 devices, and a text goes to one number; more regions than that are not facts.
    package static let deviceRegionCountMax = 21
}

private struct FactTaker: FieldVisitor {
    var facts: Facts
    let others: Facts
    let name: String
    var isFound = false

    mutating func required<Value: FieldValue>(
        _: StaticString, _: WritableKeyPath<Facts, Value>, _: String
    ) {}

    mutating func optional<Value: FieldValue>(
        _ name: StaticString, _ path: WritableKeyPath<Facts, Value?>, _: String
    ) {
        let bytes = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        guard self.name.utf8.elementsEqual(bytes) else { return }
        facts[keyPath: path] = others[keyPath: path]
        isFound = true
    }
}

/// Whether the params fit the type's schema. Values never get here; the pointers of what did not fit
/// are recorded beside the facts.
package enum ParamsFact: String, CaseIterable, Sendable, Hashable {
    case valid
    case invalid
}

/// What this send replaces.
package enum FallbackFact: String, CaseIterable, Sendable, Hashable {
    /// The send replaces nothing.
    case notFallback = "not_fallback"
    /// The send replaces a push of the same caller to the same recipient.
    case replacesOwnSend = "replaces_own_send"
    /// The send names one that is unknown, another caller's or another recipient's.
    case mismatch
}

/// Whether what a send tells was told already: equal values of the param its type declares as `dedupe_by`, for
/// this recipient, by the same caller or, where the type says so, by any; on this channel, or by a type that it is sent in
/// place of or the other way round on any.
package enum RepetitionFact: String, CaseIterable, Sendable, Hashable {
    case first
    /// Another send told it, or waits to.
    case alreadySent = "already_sent"
    /// A caller said that it need not be told any more, perhaps before a send asked to (S2, Payment Processing).
    case acknowledged
}

/// Whether the person that a send names is known.
package enum RecipientFact: String, CaseIterable, Sendable, Hashable {
    case registered
    /// Never registered, or erased: the two cannot be told apart.
    case unknown
}

/// Whether the recipient is of age, as the app's backend reported it.
package enum AgeFact: String, CaseIterable, Sendable, Hashable {
    case adult
    case minor
}

/// How much a lock screen may show, as the recipient chose (S3, "User can choose privacy level").
package enum PrivacyLevel: String, CaseIterable, Sendable, Hashable {
    case full
    case generic
    case hidden
}

/// An ISO 3166-1 alpha-2 code, or an ISO 3166-2 one where a country is not enough (`US-CA`).
///
/// Held in eight bytes so that looking a region up allocates nothing.
@usableFromInline
package struct RegionCode: Hashable, Sendable, CustomStringConvertible {
    /// The ASCII characters, first in the highest byte used.
    @usableFromInline package let packed: UInt64

    /// - Parameter text: `AA`, or `AA-` and one to three of `A-Z0-9`; any other spelling is refused.
    package init?(_ text: String) {
        var packed: UInt64 = 0
        var position = 0
        for character in text.utf8 {
            let isLetter = character >= UInt8(ascii: "A") && character <= UInt8(ascii: "Z")
            let isDigit = character >= UInt8(ascii: "0") && character <= UInt8(ascii: "9")
            switch position {
            case 0, 1: guard isLetter else { return nil }
            case 2: guard character == UInt8(ascii: "-") else { return nil }
            case 3, 4, 5: guard isLetter || isDigit else { return nil }
            default: return nil
            }
            packed = packed << 8 | UInt64(character)
            position += 1
        }
        guard position == 2 || position >= 4 else { return nil }
        self.packed = packed
    }

    /// - Precondition: At least two characters, all of them ASCII.
    @inlinable
    init(packed: UInt64) { self.packed = packed }

    /// The code of no known region, as in CLDR (UTS #35, "Unknown or Invalid Territory"); user-assigned in ISO 3166-1,
    /// and in no bundle.
    package static let unknown = RegionCode("ZZ")!

    /// The country a subdivision lies in; itself for a country.
    @inlinable
    package var country: RegionCode {
        // An ASCII character's highest bit is 0, so that rounding down counts the bytes before the first one.
        let characters = 8 - packed.leadingZeroBitCount / 8
        return RegionCode(packed: packed >> UInt64(8 * (characters - 2)))
    }

    @usableFromInline
    package var description: String { String(decoding: characters, as: UTF8.self) }

    /// Its ASCII characters, without quotation marks.
    package func write(to json: inout CanonicalWriter) {
        for place in (0..<8).reversed() {
            let character = UInt8(truncatingIfNeeded: packed >> UInt64(8 * place))
            if character > 0 { json.byte(character) }
        }
    }

    private var characters: some Collection<UInt8> {
        stride(from: 56 - packed.leadingZeroBitCount / 8 * 8, through: 0, by: -8).lazy.map {
            UInt8(truncatingIfNeeded: packed >> UInt64($0))
        }
    }
}

/// Where a person was believed to be, from which source, and since when.
package struct RegionObservation: Hashable, Sendable {
    package var code: RegionCode
    package var source: RegionSource
    package var observedAt: Instant

    package init(code: RegionCode, source: RegionSource, observedAt: Instant) {
        self.code = code
        self.source = source
        self.observedAt = observedAt
    }
}

/// How a region became known; policy says how long each stays fresh.
package enum RegionSource: String, CaseIterable, Sendable, Hashable {
    case kyc
    case userDeclared = "user_declared"
    case device
    case sim
    case ip
}

/// The newest word of one person on one purpose.
package struct ConsentFact: Hashable, Sendable {
    package var state: ConsentState
    /// How it was given; `nil` unless ``state`` is `given`.
    package var method: ConsentMethod?
    /// When a given consent stops counting, if ever.
    package var expiresAt: Instant?

    package init(state: ConsentState, method: ConsentMethod? = nil, expiresAt: Instant? = nil) {
        self.state = state
        self.method = method
        self.expiresAt = expiresAt
    }

    /// Whether it was given and does not count any more.
    package func hasExpired(at moment: Instant) -> Bool {
        state == .given && (expiresAt.map { moment >= $0 } ?? false)
    }
}

/// What a person last said on one purpose, as far as it reaches the destination of a send.
package enum ConsentState: String, CaseIterable, Sendable, Hashable {
    case given
    case neverAsked = "never_asked"
    case refused
    case withdrawn
    /// Given for another channel only: push consent never covers SMS.
    case otherChannel = "other_channel"
    /// Given for another number or e-mail address only.
    case otherAddress = "other_address"
}

/// How consent was given, refused or withdrawn. Policy says which methods of giving it suffice for a channel and a regime.
@usableFromInline
package enum ConsentMethod: String, CaseIterable, Sendable, Hashable {
    case inAppToggle = "in_app_toggle"
    case webForm = "web_form"
    case doubleOptIn = "double_opt_in"
    case paperForm = "paper_form"
    case phoneCall = "phone_call"
    case smsKeyword = "sms_keyword"
    /// A word in a reply by e-mail.
    case emailReply = "email_reply"
    /// ePrivacy Directive Art. 13(2): own similar products, address obtained in a sale, objection offered.
    case existingCustomer = "existing_customer"
    /// 47 CFR 64.1200(a)(1): prior express consent of the called party.
    case expressConsent = "express_consent"
    /// 47 CFR 64.1200(f)(9): prior express written consent.
    case writtenConsent = "written_consent"
    /// A withdrawal that follows from the no of somebody else who registered the same number or mailbox.
    case sharedAddress = "shared_address"

    /// The methods that a caller may assert. The others are recorded by the gateway alone, of withdrawals only, so that no notice
    /// and no fact has them.
    @usableFromInline package static let allCases: [ConsentMethod] = [
        .inAppToggle, .webForm, .doubleOptIn, .paperForm, .phoneCall, .smsKeyword, .emailReply,
        .existingCustomer, .expressConsent, .writtenConsent,
    ]

    /// The methods that a record of consent may have, in the order of their declaration.
    package static let recorded = allCases + [.sharedAddress]

    /// A word in answer to a message.
    package static func reply(on channel: Channel) -> ConsentMethod {
        channel == .email ? .emailReply : .smsKeyword
    }

    package var isReply: Bool { self == .smsKeyword || self == .emailReply }

    /// Whether a law ties it to a text of its own: what is signed, or told at a sale, is nothing else's consent.
    @inlinable
    package var hasNoticeOfItsOwn: Bool {
        switch self {
        case .existingCustomer, .writtenConsent: true
        default: false
        }
    }

    /// Whether it is a statement about the very thing asked (GDPR Art. 9(2)(a), PSD2 Art. 67(2)(a)).
    ///
    /// A word in answer to a message does not say to what, and express consent to texts may be no more than a number
    /// that was handed over.
    @inlinable
    package var isExplicit: Bool {
        switch self {
        case .inAppToggle, .webForm, .doubleOptIn, .paperForm, .phoneCall, .writtenConsent: true
        case .smsKeyword, .emailReply, .existingCustomer, .expressConsent, .sharedAddress: false
        }
    }
}

/// One preference: a choice, or none yet. Changing a default never touches a choice.
package enum PreferenceState: String, CaseIterable, Sendable, Hashable {
    case `default`
    case userOn = "user_on"
    case userOff = "user_off"
    /// Switched off through the step-up flow, the only way to switch security off.
    case userOffStepUp = "user_off_step_up"

    package var isOff: Bool {
        switch self {
        case .userOff, .userOffStepUp: true
        case .default, .userOn: false
        }
    }
}

/// Whether the destination of a send can be reached.
package enum DestinationFact: String, CaseIterable, Sendable, Hashable {
    case active
    /// The recipient has none on this channel.
    case noneRegistered = "none_registered"
    /// The send names one that does not exist.
    case unknown
    case inactive
    /// An address that was not proved to be the recipient's.
    case unverified
    /// An address that another person proved theirs later, or at the same moment (decision SG-0044).
    case contested
}

/// What the operating system lets the app do, as the app last reported it.
package enum OSPermission: String, CaseIterable, Sendable, Hashable {
    case granted
    /// iOS: delivered quietly to Notification Center (`UNAuthorizationOptionProvisional`).
    case provisional
    case denied
    case notDetermined = "not_determined"
}

/// The recipient's quiet hours, resolved to this destination's local time.
package enum QuietHoursFact: Hashable, Sendable {
    /// None set, or start equals end.
    case off
    /// Set, but no time zone is known for the device or the account; quiet in none of the zones the recipient may be in,
    /// or, where it is always quiet in one of them, not in the first.
    case zoneMissing
    case outside
    /// Inside the window, which ends at the given moment.
    case inside(endsAt: Instant)
    /// No time zone is known, and it is quiet in one of the zones the recipient may be in. Ends when it is quiet in none;
    /// where it always is in one, when it ends in the first.
    case insideSomewhere(endsAt: Instant)

    /// When what waits for the window's end may go; `nil` outside of it.
    package var endsAt: Instant? {
        switch self {
        case .off, .zoneMissing, .outside: nil
        case .inside(let end), .insideSomewhere(let end): end
        }
    }
}

/// Whether a device has a key that a body can be sealed to.
package enum DeviceKeyFact: String, CaseIterable, Sendable, Hashable {
    case usable
    case none
    /// Registered, but possession is not proved yet.
    case unconfirmed
    case revoked
    /// The message was sealed before, to a key that was revoked since. No other form of it is left.
    case sealedToRevoked = "sealed_to_revoked"
}

/// Bytes of the composed payload in each form it could take; `nil` for a form that was not composed.
@usableFromInline
package struct PayloadSizes: Hashable, Sendable {
    @usableFromInline package var sealed: Int?
    @usableFromInline package var generic: Int?
    @usableFromInline package var full: Int?

    package init(sealed: Int? = nil, generic: Int? = nil, full: Int? = nil) {
        self.sealed = sealed
        self.generic = generic
        self.full = full
    }

    @inlinable
    package subscript(form: BodyForm) -> Int? {
        switch form {
        case .sealed: sealed
        case .generic: generic
        case .full: full
        case .never: nil
        }
    }
}
