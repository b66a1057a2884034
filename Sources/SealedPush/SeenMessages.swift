import Synchronization

/// What is known of a message id when a message arrives.
public enum SeenMessage: Sendable, Hashable {
    /// The id was new, and is recorded now.
    case new
    /// The id was recorded with the same digest.
    case same
    /// The id was recorded with another digest. The record is unchanged.
    case different
}

/// The messages a device has opened: how a repeated one is noticed.
///
/// The app and its notification service extension must share one store, in their app group's container
/// for example, because either may open a message first.
///
/// An implementation promises:
/// - ``record(messageID:digest:expiresAt:)`` is atomic between threads and between processes: of two that
///   bring the same new id at once, exactly one hears ``SeenMessage/new``.
/// - A record is durable before the call returns, and is kept until its `expiresAt` has passed. After that it
///   may be forgotten, as an expired message is refused anyway.
/// - When it cannot promise that, it throws; the message is then not opened.
public protocol SeenMessages: Sendable {
    /// - Parameters:
    ///   - messageID: 16 bytes.
    ///   - digest: Of the whole envelope, 32 bytes.
    ///   - expiresAt: Unix seconds.
    func record(messageID: [UInt8], digest: [UInt8], expiresAt: UInt64) throws -> SeenMessage

    /// Forgets what expired before `now` (Unix seconds). Called before every
    /// ``record(messageID:digest:expiresAt:)``; does nothing unless implemented.
    func forgetExpired(now: UInt64) throws
}

extension SeenMessages {
    public func forgetExpired(now: UInt64) throws {}
}

/// A record that lasts as long as the process: for an app without an extension, and for tests.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, macCatalyst 18, *)
public final class InMemorySeenMessages: SeenMessages {
    /// More unexpired messages than this came in.
    public struct TooManyMessages: Error, Equatable {
        /// The bound that was reached, in messages.
        public let countMax: Int
    }

    private struct Record {
        let digest: [UInt8]
        let expiresAt: UInt64
    }

    private let records = Mutex<[[UInt8]: Record]>([:])
    private let countMax: Int

    /// - Parameter countMax: Unexpired messages held at once, about 150 bytes each. Forgetting one early
    ///   would let it be repeated, so a message beyond this is refused.
    public init(countMax: Int = 10_000) {
        self.countMax = countMax
    }

    public func record(messageID: [UInt8], digest: [UInt8], expiresAt: UInt64) throws -> SeenMessage {
        try records.withLock { records throws(TooManyMessages) in
            if let known = records[messageID] { return known.digest == digest ? .same : .different }
            guard records.count < countMax else { throw TooManyMessages(countMax: countMax) }
            records[messageID] = Record(digest: digest, expiresAt: expiresAt)
            return .new
        }
    }

    public func forgetExpired(now: UInt64) {
        records.withLock { records in
            guard records.contains(where: { $0.value.expiresAt < now }) else { return }
            records = records.filter { $0.value.expiresAt >= now }
        }
    }
}
