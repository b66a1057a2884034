/// The questions every send is asked, in their order. All are always asked.
///
/// Only ever added to, at the end: the raw value is the position in every trace that was ever recorded (``GateRevision``).
@usableFromInline
package enum Gate: UInt8, CaseIterable, Sendable, Hashable, Comparable {
    /// 0: not past its expiry, and not due after it.
    case expiry
    /// 1: the type is in the registry and enabled; params fit its schema.
    case type
    /// 2: the caller may send this type.
    case caller
    /// 3: critical delivery is asked by a caller that may, for a type on the allow-list.
    case critical
    /// 4: the law on fallbacks, and the channels the type allows.
    case fallback
    /// 5: recipient and destination are known and active.
    case destination
    /// 6: consent or another permission, by category, channel and regime.
    case permission
    /// 7: what the recipient chose.
    case preferences
    /// 8: what the device's operating system allows.
    case osPermission
    /// 9: the recipient's quiet hours.
    case quietHours
    /// 10: frequency caps, per type, per category and over everything.
    case caps
    /// 11: a usable device key when the body is sealed.
    case deviceKey
    /// 12: the composed payload fits the channel.
    case size

    package var name: String {
        switch self {
        case .expiry: "expiry"
        case .type: "type"
        case .caller: "caller"
        case .critical: "critical"
        case .fallback: "fallback"
        case .destination: "destination"
        case .permission: "permission"
        case .preferences: "preferences"
        case .osPermission: "os_permission"
        case .quietHours: "quiet_hours"
        case .caps: "caps"
        case .deviceKey: "device_key"
        case .size: "size"
        }
    }

    @inlinable
    package static func < (left: Gate, right: Gate) -> Bool { left.rawValue < right.rawValue }
}
