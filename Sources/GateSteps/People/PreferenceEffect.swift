import BundleModel
import CompliancePolicy
package import GateVocabulary
import GateRecords
package import SendPlanning

/// Whether a choice has its effect, and if not, why not, as the gates that decide sends say.
package struct PreferenceEffect {
    package var isOn: Bool
    /// A reason's name, or `chosen`, `default`, `drift_audit`, `permitted`, `withheld`.
    package var why: String
    /// What exactly is missing, for a consent.
    package var detail: Detail?
    /// What the person can do about it; `nil` when they cannot change it.
    package var remedy: Sentence.Remedy?
    /// What a type needs consent to besides its category, where that is what is missing.
    package var purpose: Purpose?
}

extension PreferenceEffect {
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
        let audit = person.state.preferences.first {
            $0.scope == scope && $0.channel == channel
                && ($0.isSuppression && $0.destination == obstacle.place?.tag || $0.isClosing)
        }
        switch (obstacle.reason, audit) {
        case (.userPreference, let audit?):
            self.init(isOn: false, why: audit.source.rawValue, remedy: .chooseAgain)
        case (.userPreference, nil) where own.isOff: self.init(isOn: false, why: "chosen")
        case (.userPreference, nil) where obstacle.isWithheld: self.init(isOn: false, why: "withheld")
        case (.userPreference, nil) where !obstacle.isChosen: self.init(isOn: false, why: "default")
        case (.userPreference, nil):
            let isOffForAccount = person.preference(scope, channel, at: nil).isOff
            let first: Sentence.Remedy =
                isOffForAccount && destination != nil
                ? .switchOnForAccount
                : destination == nil && obstacle.detail == .destinationOff
                    ? .switchOnAtPlace : .switchOnCategory
            self.init(isOn: false, why: Reason.userPreference.rawValue, remedy: first)
        case (let reason, _):
            self.init(
                isOn: false, why: reason.rawValue, detail: obstacle.detail,
                remedy: Self.remedy(reason, at: obstacle.place), purpose: obstacle.purpose)
        }
    }

    /// A scope is a category, or a type that has one.
    private static func category(of scope: String, in policy: CompiledPolicy) -> Category? {
        Category(rawValue: scope) ?? policy.type(TypeID(scope))?.category
    }

    private struct Obstacle {
        var reason: Reason
        var detail: Detail?
        var place: Destination?
        /// Whether the person switched something off, as opposed to a category that is off by default.
        var isChosen: Bool
        /// Whether the person takes part in what the category is withheld from.
        var isWithheld: Bool
        var purpose: Purpose?
    }

    /// The reason that prevents delivery at one destination. A block by the phone comes first, then a choice of the person,
    /// then a missing consent.
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

    private static func remedy(_ reason: Reason, at place: Destination?) -> Sentence.Remedy? {
        switch reason {
        case .blockedAtOSLevel: place?.device?.platform == .ios ? .allowOnIOS : .allowOnAndroid
        case .pushDisabled: .switchPushOn
        case .noGDPRConsent, .noMarketingOptIn, .noPurposeConsent: .giveConsent
        case .noSMSConsent: .giveSMSConsent
        case .noEmailConsent: .giveEmailConsent
        default: nil
        }
    }
}
