package import CanonicalJSON

/// What a producer asks for: one notification to one recipient. Well-formed, nothing more.
///
/// Bounds (checked by `WireProtocol`): ``id`` and every other text 1 to 128 bytes of UTF-8,
/// ``deepLink`` at most ``deepLinkByteCountMax``, `ttl` 1 s to ``ttlSecondsMax``.
package struct SendRequest: Hashable, Sendable {
    package var id: RequestID
    package var type: TypeID
    package var user: UserID
    /// One destination; `nil` means every active one of the channel.
    package var destination: DestinationID?
    package var params: JSONObject
    package var channel: Channel
    /// The send this one replaces, as its `send_id`.
    package var fallbackFor: SendID?
    package var critical: Bool
    package var ttlSeconds: Int64?
    package var collapseKey: String?
    package var deepLink: String?
    /// A BCP 47 language tag; `nil` means the recipient's.
    package var locale: String?
    /// Whether the producer's own sender sent it, in shadow; `nil` where the producer does not say.
    package var sent: Bool?

    package init(
        id: RequestID, type: TypeID, user: UserID, destination: DestinationID? = nil,
        params: JSONObject = [:], channel: Channel = .push, fallbackFor: SendID? = nil,
        critical: Bool = false, ttlSeconds: Int64? = nil, collapseKey: String? = nil,
        deepLink: String? = nil, locale: String? = nil, sent: Bool? = nil
    ) {
        self.id = id
        self.type = type
        self.user = user
        self.destination = destination
        self.params = params
        self.channel = channel
        self.fallbackFor = fallbackFor
        self.critical = critical
        self.ttlSeconds = ttlSeconds
        self.collapseKey = collapseKey
        self.deepLink = deepLink
        self.locale = locale
        self.sent = sent
    }

    /// Bytes of a link; it is ASCII.
    package static let deepLinkByteCountMax = 512
    /// Characters of the name of a param.
    package static let paramNameCharacterCountMax = 64
    /// 28 days, in seconds: the longest time FCM stores a message (FCM, "Set the lifespan of a message").
    package static let ttlSecondsMax: Int64 = 28 * 86_400
}

/// The part of a send that a decision may look at, asked by a caller the kernel vouched for.
///
/// Made in `PeerAttestation` from a ``SendRequest``, and read back from the trail for replay. Params
/// and texts stay behind: a decision cannot depend on what it never sees.
package struct AttestedRequest: Hashable, Sendable {
    package var caller: CallerName
    package var type: TypeID
    package var channel: Channel
    package var critical: Bool

    package init(caller: CallerName, type: TypeID, channel: Channel, critical: Bool) {
        self.caller = caller
        self.type = type
        self.channel = channel
        self.critical = critical
    }
}
