import BundleModel
import CompliancePolicy
package import GateVocabulary
import RecipientModel

/// Whether a choice has its effect, and if not, what stands in the way: the very gates that decide sends say so.
package struct PreferenceEffect {
    package var isOn: Bool
    /// A reason's name, or `chosen`, `default`, `drift_audit`, `permitted`, `withheld`.
    package var why: String
    /// What exactly is missing, for a consent.
    package var detail: Detail?
    package var howToFix: String?

    /// - Parameter destination: `nil` for the account, whose row speaks for all its destinations: it is on while it is
    ///   on at one of them.
    package init(
        scope: String, channel: Channel, destination: Destination?, person: RecipientSnapshot,
        facts loading: FactsLoading
    ) {
        let own = person.preference(scope, channel, at: destination?.tag)
        var places: [Destination?] = destination.map { [$0] } ?? person.destinations(on: channel)
        places.sort { ($0?.id.text ?? "") < ($1?.id.text ?? "") }
        if places.isEmpty { places = [nil] }
        var obstacles: [Obstacle] = []
        for place in places {
            guard let obstacle = Self.obstacle(to: scope, on: channel, at: place, of: person, loading) else {
                // A yes to e-mail or texts stands at the address it was given for.
                let chosen = [nil, place?.tag].contains {
                    person.preference(scope, channel, at: $0) == .userOn
                }
                let category = Self.category(of: scope, in: loading.policy)
                let isOnByDefault = category.map { loading.policy.category($0).isOnByDefault } == true
                self.init(isOn: true, why: chosen ? "chosen" : isOnByDefault ? "default" : "permitted")
                return
            }
            obstacles.append(obstacle)
        }
        let obstacle = obstacles[0]
        let isSuppressed = person.state.preferences.contains {
            $0.isSuppression && $0.scope == scope && $0.channel == channel
                && $0.destination == obstacle.place?.tag
        }
        switch obstacle.reason {
        case .userPreference where isSuppressed:
            self.init(
                isOn: false, why: PreferenceSource.driftAudit.rawValue,
                howToFix: "The provider has this device unsubscribed: choose it again in the app")
        case .userPreference where own.isOff: self.init(isOn: false, why: "chosen")
        case .userPreference where obstacle.isWithheld: self.init(isOn: false, why: "withheld")
        case .userPreference where !obstacle.isChosen: self.init(isOn: false, why: "default")
        case .userPreference:
            let isOffForAccount = person.preference(scope, channel, at: nil).isOff
            let first =
                isOffForAccount && destination != nil
                ? "Switch it on for the account first"
                : destination == nil && obstacle.detail == .destinationOff
                    ? "Switch it on at the device or address" : "Switch on its category first"
            self.init(isOn: false, why: Reason.userPreference.rawValue, howToFix: first)
        case let reason:
            self.init(
                isOn: false, why: reason.rawValue, detail: obstacle.detail,
                howToFix: Self.remedy(reason, for: obstacle.purpose, at: obstacle.place))
        }
    }

    private init(isOn: Bool, why: String, detail: Detail? = nil, howToFix: String? = nil) {
        self.isOn = isOn
        self.why = why
        self.detail = detail
        self.howToFix = howToFix
    }

    /// A scope is a category, or a type that has one.
    private static func category(of scope: String, in policy: CompiledPolicy) -> Category? {
        Category(rawValue: scope) ?? policy.type(TypeID(scope))?.category
    }

    private struct Obstacle {
        var reason: Reason
        var detail: Detail?
        var place: Destination?
        /// Whether somebody switched something off, and it is not only off by default.
        var isChosen: Bool
        /// Whether the person takes part in what the category is withheld from.
        var isWithheld: Bool
        /// What a type needs consent to besides its category, where that is what is missing.
        var purpose: Purpose?
    }

    /// What is in the way at one destination, the nearest to the person first: what the phone blocks, what they switched
    /// off, what they did not agree to.
    private static func obstacle(
        to scope: String, on channel: Channel, at place: Destination?, of person: RecipientSnapshot,
        _ loading: FactsLoading
    ) -> Obstacle? {
        let type = Category(rawValue: scope) == nil ? TypeID(scope) : nil
        guard let category = category(of: scope, in: loading.policy) else { return nil }
        let facts = loading.standingFacts(of: category, type: type, on: channel, person: person, at: place)
        let standing = loading.policy.standing(of: category, type: type, on: channel, given: facts)
        let choices = [
            facts.accountPreference, facts.destinationPreference, facts.accountTypePreference,
            facts.destinationTypePreference,
        ]
        let isChosen =
            choices.contains { $0?.isOff == true } || channel == .push && facts.pushEnabled == false
        let order =
            isChosen
            ? [standing.osPermission, standing.preferences, standing.permission]
            : [standing.osPermission, standing.permission, standing.preferences]
        for result in order {
            guard let reason = result.reason else { continue }
            let ofCategory = loading.policy.standing(of: category, on: channel, given: facts).permission
            let purpose =
                ofCategory.verdict == .fail ? nil : type.flatMap { loading.policy.type($0)?.purpose }
            return Obstacle(
                reason: reason, detail: result.detail, place: place, isChosen: isChosen,
                isWithheld: !isChosen && facts.withheld == true, purpose: purpose)
        }
        return nil
    }

    /// What the person can do about it; `nil` when it is not theirs to change.
    private static func remedy(_ reason: Reason, for purpose: Purpose?, at place: Destination?) -> String? {
        switch reason {
        case .blockedAtOSLevel:
            place?.device?.platform == .ios
                ? "Open Settings, Notifications, this app, and allow notifications"
                : "Open Settings, Apps, this app, Notifications, and allow them"
        case .pushDisabled: "Switch push notifications on for the account"
        case .noGDPRConsent, .noMarketingOptIn, .noPurposeConsent:
            "Give consent to \(purpose.map { "`\($0)`" } ?? "offers") on this channel"
        case .noSMSConsent: "Give consent to text messages at this number"
        case .noEmailConsent: "Give consent to e-mail at this address"
        default: nil
        }
    }
}
