/// The **consent** axis: what kind of permission a notification needs.
///
/// A closed enum on purpose. A notification that fits none of the four is a question for the
/// policy owners, not a fifth case (S1, "Category model beats channel model").
package enum Category: String, CaseIterable, Sendable, Hashable {
    case transactional
    case security
    case social
    case marketing
}

/// The **urgency** axis: how hard the platform is asked to interrupt (S0's P0 to P3).
package enum Tier: String, CaseIterable, Sendable, Hashable {
    case critical
    case important
    case informational
    case promotional
}

/// The **privacy** axis: what an eavesdropper would learn from the content.
package enum Sensitivity: String, CaseIterable, Sendable, Hashable {
    /// Says nothing about the person; may travel in clear.
    case open
    /// Names something about the person, nothing that harms on its own.
    case personal
    /// Amounts, counterparties, codes, health. On push it leaves only sealed.
    case high
}

/// How a notification travels to a destination.
@usableFromInline
package enum Channel: String, CaseIterable, Sendable, Hashable {
    case push
    case sms
    case email
}

/// Which push service a device listens to.
package enum Platform: String, CaseIterable, Sendable, Hashable {
    case ios
    case android
}

/// The law that applies to a recipient, by region. Which is stricter is a table of `regions.yaml`.
@usableFromInline
package enum Regime: String, CaseIterable, Sendable, Hashable {
    case gdpr
    case ukGDPR = "uk_gdpr"
    case gdprLike = "gdpr_like"
    case other
}

/// How much of a notification one channel may carry.
@usableFromInline
package enum BodyForm: String, CaseIterable, Sendable, Hashable {
    /// Everything that tells is inside an envelope only the device can open.
    case sealed
    /// A text that is true of every notification of the app and so tells nothing.
    case generic
    /// The composed text, in clear.
    case full
    /// The channel does not carry the type.
    case never
}
