import Foundation
import SealedPush

/// The device's side of one person: its key.
struct BenchPhone: Sendable {
    /// Of the person; see ``BenchGateway/user(_:)``.
    let number: Int
    let key: DeviceKey

    func opener(trusting origins: [OriginKey]) throws -> SealedPushOpener {
        try SealedPushOpener(
            app: BenchGateway.app, device: BenchGateway.device, keys: [key], origins: origins,
            seen: InMemorySeenMessages())
    }

    static var now: UInt64 { UInt64(Date().timeIntervalSince1970) }
}
