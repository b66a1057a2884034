/// Something about a send that a statute speaks of, read from the bundle's pages and the facts.
///
/// The terms of the statutes themselves: they are worked out a second time from the facts, without asking a gate.
package enum Circumstance: UInt8, CaseIterable, Sendable, Hashable {
    // What the pages alone say of the send
    case unregistered
    case disabled
    case callerNotPermitted
    case criticalNotPermitted
    case channelClosed
    case highSensitivity
    case mandatoryDespitePreferences
    case mandatoryDespiteHours
    case mandatoryDespiteCaps
    case security
    case statutoryEmail
    case codeText
    case flagNotPermitted
    /// True of every send: for what no decision may ever do.
    case anySend

    // Time
    case timeUnknown
    case expired
    case dueAfterExpiry
    case waitsBeyondExpiry
    case beforeItsTime
    case toldBefore
    case repetitionUnknown

    // The request
    case paramsUnfit
    case fallbackUnproved
    case fallbackForbidden
    case codeTextForbidden

    // The recipient and the destination
    case recipientUnknown
    case destinationUnusable

    // Permission
    case minor
    case ageUnknown
    case marketingWithoutOptIn
    case textWithoutConsent
    case fallbackWithoutConsent
    case declaredPermissionMissing
    case purposeMissing
    case europeanOptInMissing

    // What the recipient chose
    case withheld
    case switchedOff
    case neverWanted
    case preferencesUnknown
    case securityNotSwitchedOff

    // What the device allows
    case blockedByOS
    case deviceWithoutFlag

    // Hours and caps
    case quietHours
    case zoneMissing
    case hoursUnknown
    case askedForAnyHour
    case askedHoweverOften
    case overCap
    case countsUnknown

    // What leaves
    case keyUnusable
    case worthlessWithoutKey
    case clearTextUnwanted
    case doesNotFit

    /// Whether it stands in the way of a send. The others only say what must not be done with it.
    var isAdverse: Bool {
        switch self {
        case .highSensitivity, .mandatoryDespitePreferences, .mandatoryDespiteHours, .mandatoryDespiteCaps,
            .security, .statutoryEmail, .codeText, .flagNotPermitted, .anySend, .securityNotSwitchedOff,
            .deviceWithoutFlag,
            .keyUnusable, .clearTextUnwanted, .askedForAnyHour, .askedHoweverOften:
            false
        default: true
        }
    }
}

/// A set of circumstances.
package struct Conditions: OptionSet, Hashable, Sendable {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    package init(_ one: Circumstance) { rawValue = 1 << UInt64(one.rawValue) }
    package init(_ several: some Sequence<Circumstance>) {
        self = several.reduce(into: []) { $0.formUnion(Conditions($1)) }
    }

    package func contains(_ one: Circumstance) -> Bool { contains(Conditions(one)) }

    mutating func insert(_ one: Circumstance, if isTrue: Bool) {
        if isTrue { formUnion(Conditions(one)) }
    }

    /// Whatever stands in the way of a send.
    package static let adverse = Conditions(Circumstance.allCases.filter(\.isAdverse))
}
