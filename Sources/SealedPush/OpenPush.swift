import SealedFormat

#if canImport(CryptoKit)
    import CryptoKit
#else
    import Crypto
#endif

/// A push that was shown in the clear, and that the gateway signed for this app on this device.
///
/// Made by ``SealedPushOpener/verify(apns:now:)`` and ``SealedPushOpener/verify(fcm:now:)`` alone: an app that takes texts
/// and links from here and from ``SealedMessage`` only can show and follow nothing that the gateway did not write.
public struct OpenPush: Sendable, Hashable {
    /// The title as it was shown.
    public let title: String
    /// The text as it was shown.
    public let body: String
    /// Where a tap leads.
    public let deepLink: String?
    /// The way out of a marketing or social message.
    public let unsubscribe: String?
    /// `nil` in a generic push, as everything below but ``sendID``.
    public let type: String?
    /// The consent axis, which an app mutes by.
    public let category: String?
    /// Which of the app's buttons it has; on iOS only.
    public let actionCategory: String?
    /// The number on the app's icon; on iOS only.
    public let badge: String?
    /// The number of the alert, in decimal digits.
    public let number: String?
    /// `true` when the alert can be looked up by its id, else `false`.
    public let alertRecord: String?
    /// References of the event: a JSON object of UUIDs by name.
    public let params: String?
    /// A lower-case UUID, under which the app's server can ask the gateway.
    public let sendID: String
    /// A lower-case UUID; the same in receipts.
    public let messageID: String
    /// Unix seconds; the push must not be shown afterwards.
    public let expiresAt: UInt64
}

/// A push that was found genuine.
public enum VerifiedPush: Sendable, Hashable {
    case sealed(Opening)
    /// `isNew` is false for one that was verified before, by the extension or at an earlier delivery: its link may be
    /// followed, and it is not to alert again.
    case open(OpenPush, isNew: Bool)
}

@available(macOS 14, iOS 17, tvOS 17, watchOS 10, visionOS 1, macCatalyst 17, *)
extension SealedPushOpener {
    /// Opens what is sealed, and verifies what is not.
    ///
    /// - Parameters:
    ///   - userInfo: Of the notification's content, as the system hands it to an extension or to the app. A push that came by
    ///     way of Expo's push service has its members in `body`, and the texts in there are those that are verified.
    ///   - now: Unix seconds by the device's clock.
    /// - Throws: ``SealedPushError/unsigned`` for a push without the gateway's mark, and whatever ``open(_:now:)`` throws.
    ///   Texts and links of the push are then not the gateway's: show the app's own.
    public func verify(apns userInfo: [AnyHashable: Any], now: UInt64) throws(SealedPushError) -> VerifiedPush
    {
        if let envelope = userInfo["sendgate"] as? String { return .sealed(try open(envelope, now: now)) }
        guard let mark = userInfo["origin"] as? String else {
            guard let data = Self.expoData(in: userInfo) else { throw .unsigned }
            return try verify(fcm: data, now: now)
        }
        let aps = userInfo["aps"] as? [AnyHashable: Any] ?? [:]
        let alert = aps["alert"] as? [AnyHashable: Any] ?? [:]
        return try verify(mark: mark, now: now) { member in
            switch member {
            case .title, .body: alert[member.rawValue] as? String
            case .actionCategory: aps["category"] as? String
            case .badge: (aps["badge"] as? Int).map { String($0) }
            case .number: (userInfo["number"] as? Int).map { String($0) }
            case .alertRecord: (userInfo["alert_record"] as? Bool).map { String($0) }
            case .params: (userInfo["params"] as? [AnyHashable: Any]).map(Self.canonicalText)
            case .category, .deepLink, .send, .type, .unsubscribe: userInfo[member.rawValue] as? String
            }
        }
    }

    /// Opens what is sealed, and verifies what is not; see ``verify(apns:now:)``.
    ///
    /// - Parameter data: `RemoteMessage.getData()` in the foreground, or the extras of the intent after a tap. The texts of
    ///   the message's `notification` are not looked at: `data` has them too, and only there are they verified.
    public func verify(fcm data: [String: String], now: UInt64) throws(SealedPushError) -> VerifiedPush {
        if let envelope = data["sendgate"] { return .sealed(try open(envelope, now: now)) }
        guard let mark = data["origin"] else { throw .unsigned }
        return try verify(mark: mark, now: now) { data[$0.rawValue] }
    }

    /// What Expo made of a message's `data`, which are texts.
    private static func expoData(in userInfo: [AnyHashable: Any]) -> [String: String]? {
        guard let data = userInfo["body"] as? [AnyHashable: Any] else { return nil }
        var texts: [String: String] = [:]
        for (name, value) in data {
            if let name = name as? String, let value = value as? String { texts[name] = value }
        }
        return texts
    }

    private func verify(
        mark text: String, now: UInt64, _ value: (OpenPushMember) -> String?
    ) throws(SealedPushError) -> VerifiedPush {
        if let keysetExpiresAt, now >= keysetExpiresAt { throw .expiredKeyset(expiredAt: keysetExpiresAt) }
        let mark: OriginMark
        let statement: [UInt8]
        do throws(SealedFormatError) {
            mark = try OriginMark(parsing: text)
            statement = try OpenPushStatement.bytes(
                originKeyID: mark.originKeyID, app: app, device: device, messageID: mark.messageID,
                expiresAt: mark.expiresAt, content: try OpenPushContent(value))
        } catch { throw .malformedMark(detail: error.description) }
        guard now < mark.expiresAt else { throw .expired(expiredAt: mark.expiresAt) }
        let originKeyID = IdentifierText.hexadecimal(mark.originKeyID)
        guard let origin = origins[originKeyID] else { throw .unknownOrigin(originKeyID: originKeyID) }
        guard origin.isValidSignature(mark.signature, for: statement) else {
            throw .forgedOrigin(originKeyID: originKeyID)
        }
        guard let title = value(.title), let body = value(.body), let sendID = value(.send) else {
            throw .malformedMessage(detail: "a signed push without a title, a body or a send")
        }
        let push = OpenPush(
            title: title, body: body, deepLink: value(.deepLink), unsubscribe: value(.unsubscribe),
            type: value(.type), category: value(.category), actionCategory: value(.actionCategory),
            badge: value(.badge), number: value(.number), alertRecord: value(.alertRecord),
            params: value(.params), sendID: sendID, messageID: IdentifierText.uuid(mark.messageID),
            expiresAt: mark.expiresAt)
        switch try record(
            mark.messageID, digestOf: statement + mark.signature, until: mark.expiresAt, now: now)
        {
        case .new: return .open(push, isNew: true)
        case .same: return .open(push, isNew: false)
        case .different: throw .repeatedMessageID(messageID: push.messageID)
        }
    }

    /// Canonical JSON (RFC 8785) of references by name. A name or a value with a character that JSON would escape is
    /// written as it is: the gateway signs none, so the signature then fails.
    private static func canonicalText(_ params: [AnyHashable: Any]) -> String {
        let members = params.compactMap { name, value -> (String, String)? in
            guard let name = name as? String, let value = value as? String else { return nil }
            return (name, value)
        }
        return "{"
            + members.sorted { $0.0.utf16.lexicographicallyPrecedes($1.0.utf16) }
            .map { "\"\($0)\":\"\($1)\"" }.joined(separator: ",") + "}"
    }
}
