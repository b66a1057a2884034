package import BundleModel
package import GateVocabulary

/// What has to be looked up before a request can be decided, so that the loader fetches that and no more.
///
/// A class, because a send asks for it some six times, and it would be copied each time.
package final class FactNeeds: Sendable {
    /// The type's own.
    package let category: GateVocabulary.Category
    /// The purpose ``Facts/consent`` speaks of: the category's name.
    package let purpose: Purpose
    /// The purpose ``Facts/purposeConsent`` speaks of, for a type that names one.
    package let specialPurpose: Purpose?
    /// The purpose ``Facts/ownRequest`` speaks of, for a type that names one.
    package let ownRequestPurpose: Purpose?
    /// The param whose value tells one event from another, for ``Facts/repetition``.
    package let dedupeBy: String?
    /// Among whose sends it is looked for.
    package let dedupeScope: DedupeScope
    /// The purposes ``Facts/withheld`` speaks of.
    package let withheldFrom: [Purpose]
    /// Seconds over which ``Facts/typeCount`` counts; `nil` when the type has no cap.
    package let typeWindowSeconds: Int64?
    /// The same for ``Facts/categoryCount``.
    package let categoryWindowSeconds: Int64?
    /// The same for ``Facts/everythingCount``; `nil` for a type that no limit over everything is about.
    package let everythingWindowSeconds: Int64?
    /// What ``Facts/everythingCount`` leaves out; empty where it is not counted.
    package let uncounted: Set<TypeID>
    /// Whether the type has preferences of its own; ``PreferenceState/default`` otherwise.
    package let typePreferences: Bool
    /// Seconds for which forwards are counted, over all the caps; `nil` when there is none.
    package let longestWindowSeconds: Int64?
    /// Whether ``Facts/deviceKey`` is looked at.
    package let deviceKey: Bool
    /// The forms whose size has to be known, in the order they are tried.
    package let forms: [BodyForm]
    /// Hours outside of which recipients in the listed regions count as inside quiet hours.
    package let sendingHours: SendingHours?

    /// - Parameter uncountedTypes: ``PolicyBundle/uncountedTypes``, made once.
    init(
        of type: NotificationType, on channel: Channel, in bundle: PolicyBundle, uncountedTypes: Set<TypeID>
    ) {
        category = type.category
        purpose = Purpose(type.category.rawValue)
        specialPurpose = type.purpose
        ownRequestPurpose = type.ownRequest?.purpose
        dedupeBy = type.isDeduplicated ? type.dedupeBy : nil
        dedupeScope = type.dedupeScope
        withheldFrom = bundle.categories[type.category]!.withheldFrom
        typeWindowSeconds = bundle.typeCap(of: type)?.windowSeconds
        categoryWindowSeconds = bundle.categoryCap(of: type)?.windowSeconds
        everythingWindowSeconds = bundle.everythingCap(of: type)?.windowSeconds
        uncounted = everythingWindowSeconds == nil ? [] : uncountedTypes
        longestWindowSeconds = [typeWindowSeconds, categoryWindowSeconds, everythingWindowSeconds]
            .compactMap(\.self).max()
        typePreferences = type.isMutableAlone
        deviceKey = channel == .push && type.body.push == .sealed
        forms =
            switch type.body[channel] {
            case .sealed: type.withoutKey == .generic ? [.sealed, .generic] : [.sealed]
            case .full:
                type.isStatutoryEmail(on: channel) || type.isCodeText(on: channel)
                    ? [.full] : [.full, .generic]
            case .generic: [.generic]
            case .never: []
            }
        let hours = channel == .sms ? bundle.channels.smsHours : nil
        sendingHours = hours.flatMap { $0.categories.contains(type.category) ? $0 : nil }
    }
}
