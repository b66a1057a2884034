/// Why an envelope was not opened. Show nothing of it to the user but that a message could not be read;
/// report the case, which holds no content.
public enum SealedPushError: Error, Equatable, Sendable {
    /// The bytes are no envelope in its one spelling; `detail` says where they depart from it.
    case malformedEnvelope(detail: String)
    /// A key id, public key or name given by the app has the wrong form.
    case malformedConfiguration(detail: String)
    /// The envelope is for a key this opener does not hold: an old key, or another installation's.
    case unknownKey(keyID: String)
    /// The envelope names another suite than the app's own record of the key.
    case suiteMismatch(keyID: String)
    /// The message must no longer be shown. `expiredAt` is in Unix seconds.
    case expired(expiredAt: UInt64)
    /// The seal does not open: other bytes, or sealed for another app, device, key, purpose or expiry.
    case cannotOpen
    /// The seal opened, but what is inside breaks the layout. Only a faulty gateway makes such a message.
    case malformedMessage(detail: String)
    /// The content claims an origin key that the keyset does not have as genuine. Ask for a newer keyset, then once more.
    case unknownOrigin(originKeyID: String)
    /// The origin's signature does not verify: the gateway did not seal this.
    case forgedOrigin(originKeyID: String)
    /// The keyset is no note of the pinned authority for this gateway; `detail` says why not.
    case untrustedKeyset(detail: String)
    /// An older keyset than one that was accepted here, or another text under the same version.
    case staleKeyset(version: UInt64, known: UInt64)
    /// The keyset says nothing any more (Unix seconds): ask for a newer one.
    case expiredKeyset(expiredAt: UInt64)
    /// A push in the clear without the gateway's signature: its texts and links are not the gateway's.
    case unsigned
    /// The signature of a push in the clear has no form that the gateway writes; `detail` says how it departs.
    case malformedMark(detail: String)
    /// Another message came under this message id before; this one is dropped.
    case repeatedMessageID(messageID: String)
    /// The record of seen messages could not be read or written, so a repetition cannot be ruled out.
    case seenMessagesUnavailable(detail: String)
}

extension SealedPushError {
    /// What an app does about a push that was not opened. No case shows anything of what came, asks for the same message
    /// in plaintext, or takes a step that an attacker gains from: all of them can be provoked by a forged push.
    public enum Advice: Hashable, Sendable, CaseIterable {
        /// Show the app's own constant text.
        case showOwnText
        /// Show nothing, because the message was shown before or its time is over. Where the system does not let an
        /// extension show nothing, the app's own text without a sound.
        case showNothing
        /// Show the app's own text, and have the app fetch a newer keyset from its own server, then open the push once
        /// more. A push can be made with the device's public key alone, so fetch at most once an hour.
        case fetchKeyset
        /// Show the app's own text, and have the app ask its own server, signed in as always, which key it has
        /// registered for this device. Register again only when that is not the active key of the app.
        ///
        /// - Warning: Never register because a push said so: the key id and the suite of an envelope are not
        ///   authenticated, and a forged push with a made-up key id ends here. Ask at most once a day.
        case registerAgain
    }

    /// What to do about it.
    public var advice: Advice {
        switch self {
        case .expired, .repeatedMessageID: .showNothing
        case .unknownOrigin, .expiredKeyset: .fetchKeyset
        case .unknownKey, .suiteMismatch: .registerAgain
        // A push that was changed on the way, or that the gateway did not seal, ends in one of these, so nothing follows from them. A
        // device whose key is another than the registered one hears of that by the key id.
        case .cannotOpen, .malformedEnvelope, .malformedMessage, .forgedOrigin, .unsigned, .malformedMark:
            .showOwnText
        // The earlier keyset stays good, and a second fetch would bring the same.
        case .untrustedKeyset, .staleKeyset: .showOwnText
        case .malformedConfiguration, .seenMessagesUnavailable: .showOwnText
        }
    }
}
