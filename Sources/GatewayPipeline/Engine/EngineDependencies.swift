import Dispatch
import Foundation
package import GateSteps
package import GateVocabulary
import OpenSSLCrypto
import SendPlanning

/// The dependencies of the engine, besides the store.
package struct EngineDependencies: Sendable {
    private let fixedSettings: StepSettings
    /// What every step is given, with the link keys as they are now.
    package var settings: StepSettings {
        var unsubscribe = fixedSettings.unsubscribe
        unsubscribe.keys = keys.links
        return StepSettings(fixedSettings, unsubscribe: unsubscribe)
    }
    package var clock: any Clock
    package var identifiers: any IdentifierSource
    package var sealers: SealerPool
    package var library: any TrailLibrary
    package var keys: GateKeys
    /// How far the published trail is behind, in milliseconds.
    package var publishLagMilliseconds: @Sendable () -> Int64
    /// Bytes left where the store lives.
    package var freeDiskByteCount: @Sendable () throws -> Int64
    /// Called once a commit is durable that leaves something to publish or to hand over, or messages are offered again: wakes
    /// publisher and relay. Must not block.
    package var committed: @Sendable () -> Void
    /// Called once a commit is durable with what an operator is told. Must not block.
    package var tell: @Sendable (OperatorNotice) -> Void
    /// Where sends with a `traceparent` are told of.
    package var traces: TraceLog
    /// Called when a commit's durability is unknown; ends the process.
    package var durabilityLost: @Sendable (String) -> Never

    package init(
        limits: EngineLimits, clock: any Clock, identifiers: any IdentifierSource, sealers: SealerPool,
        library: any TrailLibrary, keys: GateKeys, unsubscribeURL: String,
        publishLagMilliseconds: @escaping @Sendable () -> Int64,
        freeDiskByteCount: @escaping @Sendable () throws -> Int64,
        committed: @escaping @Sendable () -> Void,
        tell: @escaping @Sendable (OperatorNotice) -> Void, traces: TraceLog = .none,
        durabilityLost: @escaping @Sendable (String) -> Never, drift: DriftSettings = DriftSettings(),
        hasRestoredSends: Bool = false
    ) {
        fixedSettings = StepSettings(
            limits: limits, index: IndexKey(keys.index),
            unsubscribe: UnsubscribeAddress(url: unsubscribeURL, keys: keys.links),
            process: .init(
                userID: geteuid(), groupID: getegid(), processID: ProcessInfo.processInfo.processIdentifier),
            drift: drift, hasRestoredSends: hasRestoredSends)
        self.clock = clock
        self.identifiers = identifiers
        self.sealers = sealers
        self.library = library
        self.keys = keys
        self.publishLagMilliseconds = publishLagMilliseconds
        self.freeDiskByteCount = freeDiskByteCount
        self.committed = committed
        self.tell = tell
        self.traces = traces
        self.durabilityLost = durabilityLost
    }
}

extension EngineDependencies {
    package var limits: EngineLimits { fixedSettings.limits }
    var index: IndexKey { fixedSettings.index }

    /// Has a body completed on another thread: sealed or signed by the origin key, and filled with what comes of it.
    ///
    /// - Parameter group: The bodies that are waited for together.
    func complete(_ plan: DeliveryPlan, in group: DispatchGroup) -> SealerPool.Ticket {
        sealers.submit(in: group) { [keys] sealer in
            let origin = try keys.origin()
            switch plan.order {
            case .seal(let order):
                let recipient = DevicePublicKey(
                    validatedBefore: order.key.publicKey, suite: order.key.suite)
                return try plan.filled(
                    with: sealer.seal(
                        order.content, to: try DeviceSealingKey(recipient), purpose: order.purpose,
                        app: order.app, device: order.device, keyID: order.key.id,
                        messageID: order.message, expiresAt: order.expiresAt, origin: origin))
            case .sign(let order):
                return try plan.filled(
                    with: origin.mark(
                        order.content, app: order.app, device: order.device, messageID: order.message,
                        expiresAt: order.expiresAt))
            case nil: preconditionFailure("a body that needs no origin key waits for one")
            }
        }
    }

    /// The bytes of an entry, from the store or, once it does not hold them any more, from the published tree.
    func entry(_ index: UInt64, in store: any GateStore) throws -> [UInt8] {
        if let held = try store.read({ try $0.entry(index) }) { return held.bytes }
        guard let published = try library.entry(index) else {
            throw StoreError.damaged(
                table: "entry", row: "\(index)", "the entry is neither held nor published")
        }
        return published
    }
}
