import BundleModel
import CompliancePolicy
import GateVocabulary
import GateRecords

/// The drifts of one person, and what has to be done about each. Pure: depends on its arguments alone.
///
/// | The app | The other side | What is done |
/// | --- | --- | --- |
/// | category off | provider: subscribed | the provider is to unsubscribe the device |
/// | category on, chosen after the provider was asked | provider: not subscribed | the provider is to subscribe it |
/// | category on, by default or chosen earlier | provider: not subscribed | undecidable: suppressed at the device |
/// | push on | permission `denied` | marked, as is a denial that a later look at a push contradicts |
/// | push on | permission `provisional` | marked |
/// | critical alerts | app without the entitlement | the device's record is set to false |
/// | quiet hours | no time zone | marked |
/// | device in use | nothing heard for long, or the provider refuses | marked |
struct DriftRules {
    let policy: CompiledPolicy
    let settings: DriftSettings
    let now: Instant

    /// Categories that a recipient may switch off, and so a provider may have another state of. Security is none: no audit
    /// keeps a security notice back.
    private var categories: [Category] {
        Category.allCases.filter { policy.category($0).switchOff == .anyone }
    }

    /// - Parameters:
    ///   - person: Without what an earlier audit suppressed.
    ///   - receipts: By device.
    func findings(
        in person: RecipientSnapshot, facts loading: FactsLoading, receipts: [Tag: DeviceReceipts]
    ) -> [DriftFinding] {
        var findings: [DriftFinding] = []
        let devices = person.devices.filter(\.isActive)
        for device in devices {
            findings += subscriptions(of: device, of: person, loading)
            findings += system(device, of: person, receipts[device.tag])
        }
        if let hours = person.record.quietHours, hours.startMinute != hours.endMinute,
            person.record.timeZone == nil, devices.isEmpty || devices.contains(where: { $0.timeZone == nil })
        {
            findings.append(DriftFinding(.zoneMissing, .marked, old: "unknown"))
        }
        return findings
    }

    // MARK: The provider

    private func subscriptions(
        of device: DeviceRecord, of person: RecipientSnapshot, _ loading: FactsLoading
    ) -> [DriftFinding] {
        guard let subscriptions = device.subscriptions else { return [] }
        return categories.compactMap { category in
            guard let isSubscribed = subscriptions.states[category] else { return nil }
            let isOn = isOn(category, at: device, of: person, loading)
            guard isOn != isSubscribed else { return nil }
            guard isOn else {
                return DriftFinding(
                    .subscribedWhileOff, .repaired, device: device.tag, category: category,
                    old: Self.subscribed, new: Self.unsubscribed)
            }
            let choices = person.state.preferences.filter {
                $0.source != .driftAudit && $0.scope == category.rawValue && $0.channel == .push
                    && $0.state == .userOn
                    && ($0.destination == nil || $0.destination == device.tag)
            }
            let consent = person.consentsInForce.byScope[
                .init(purpose: Purpose(category.rawValue), channel: .push, address: nil)]
            // A yes is a choice as well, however often it was said before.
            let said =
                choices.map(\.at) + (consent?.state == .given ? [consent?.moment] : []).compactMap(\.self)
            if let chosenAt = said.max(), chosenAt > subscriptions.observedAt {
                return DriftFinding(
                    .unsubscribedWhileOn, .repaired, device: device.tag, category: category,
                    old: Self.unsubscribed, new: Self.subscribed)
            }
            let choice = person.preference(category.rawValue, .push, at: device.tag)
            return DriftFinding(
                .unsubscribedWhileOn, .suppressed, device: device.tag, category: category,
                old: choice.rawValue, new: PreferenceState.userOff.rawValue)
        }
    }

    private static let subscribed = "subscribed"
    private static let unsubscribed = "unsubscribed"

    /// Whether the recipient would get the category, by the gates that decide sends, whatever the operating system does.
    private func isOn(
        _ category: Category, at device: DeviceRecord, of person: RecipientSnapshot, _ loading: FactsLoading
    ) -> Bool {
        let facts = loading.standingFacts(
            of: category, type: nil, on: .push, person: person,
            at: person.destination(tagged: device.tag, on: .push))
        let standing = policy.standing(of: category, on: .push, given: facts)
        return standing.permission.reason == nil && standing.preferences.reason == nil
    }

    // MARK: The operating system, the token

    private func system(
        _ device: DeviceRecord, of person: RecipientSnapshot, _ receipts: DeviceReceipts?
    ) -> [DriftFinding] {
        var findings: [DriftFinding] = []
        func mark(_ kind: DriftKind, old: String) {
            findings.append(DriftFinding(kind, .marked, device: device.tag, old: old))
        }
        if device.osPermission == .denied, person.record.pushEnabled {
            let isOutdated = receipts?.observedAt.map { $0 > device.seenAt } ?? false
            mark(isOutdated ? .permissionOutdated : .blockedAtOS, old: device.osPermission.rawValue)
        }
        if device.osPermission == .provisional, person.record.pushEnabled {
            mark(.deliveredQuietly, old: device.osPermission.rawValue)
        }
        if device.criticalAlerts, device.platform == .ios, let entitled = settings.criticalAlertApps,
            !entitled.contains(device.app)
        {
            findings.append(
                DriftFinding(.notEntitled, .repaired, device: device.tag, old: "true", new: "false"))
        }
        let heardAt = max(device.seenAt, receipts?.heardAt ?? device.seenAt)
        if heardAt.advanced(byMilliseconds: settings.staleMilliseconds) < now {
            mark(.tokenStale, old: "active")
        }
        if let (event, at) = receipts?.provider, event == .failed, at > device.seenAt {
            mark(.providerRefuses, old: "active")
        }
        return findings
    }
}

/// What counts as a drift on one machine.
package struct DriftSettings: Sendable, Hashable {
    /// How long nothing may be heard of a device, in milliseconds. Firebase calls a token stale that has not connected for
    /// a month, and lets it expire after 270 days ("Best practices for FCM registration token management").
    package var staleMilliseconds: Int64 = 60 * 86_400_000
    /// Apps that Apple granted critical alerts to, by bundle id; `nil` when the configuration does not say, and then
    /// no app is taken to lack them.
    package var criticalAlertApps: Set<String>?

    package static let criticalAlertAppCountMax = 100

    package init() {}
}

/// What the provider and the app reported of one device, as far as a drift shows in it.
struct DeviceReceipts {
    /// When the recipient last opened a push on it or put one away, which the operating system must have shown.
    var observedAt: Instant?
    /// When the app last told of anything. What was on its own screen, and a number that went from its icon, are signs of
    /// the device and show no push.
    var appHeardAt: Instant?
    /// The provider's newest word, and when.
    var provider: (event: SendEventKind, at: Instant)?
    /// When the provider last took a push for it.
    var acceptedAt: Instant?

    mutating func add(_ event: EventRecord) {
        switch event.event {
        case .userObserved:
            appHeardAt = max(appHeardAt ?? event.at, event.at)
            switch ObservedAct(action: event.reason) {
            case .tap, .dismissed: observedAt = max(observedAt ?? event.at, event.at)
            case .seen, .badgeCleared: return
            }
        case .acceptedByProvider, .failed, .expired, .tokenGone:
            if event.event == .acceptedByProvider { acceptedAt = max(acceptedAt ?? event.at, event.at) }
            guard provider.map({ $0.at <= event.at }) ?? true else { return }
            provider = (event.event, event.at)
        default: return
        }
    }

    /// The newest sign of the device. A push that the provider refused, or gave up when its time was over, is none: pushes to
    /// an unused phone end so.
    var heardAt: Instant? { [appHeardAt, acceptedAt].compactMap(\.self).max() }
}
