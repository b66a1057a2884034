import CanonicalJSON

/// A push service that stands between a company and the platform's own. A device without one is pushed to by APNs or FCM.
package enum PushProvider: String, CaseIterable, Sendable, Hashable {
    /// Expo's push service: one kind of token for both platforms.
    case expo
}

extension PushProvider: FieldValue {}

/// The tokens of Expo's push service.
///
/// `isExpoPushToken` of `expo-server-sdk` accepts `ExponentPushToken[…]` and `ExpoPushToken[…]` with anything between the
/// brackets, and 32 letters and digits in the groups of a UUID. Between the brackets only characters of base64url are accepted
/// here, which all of Expo's tokens are made of: a token stands in a JSON body, and an error of Expo's quotes it.
package enum ExpoPushToken {
    /// Characters between the brackets. Expo's tokens have 22; the rest is room.
    package static let nameCharacterCountMax = 128
    /// Characters of the longest token.
    package static let characterCountMax = "ExponentPushToken[]".utf8.count + nameCharacterCountMax
    private static let groups = [8, 4, 4, 4, 12]

    /// ECMA-262, for a JSON Schema.
    package static let pattern =
        #"^(?:Expo(?:nent)?PushToken\[[A-Za-z0-9_-]{1,\#(nameCharacterCountMax)}\]"#
        + #"|[A-Za-z0-9]{8}(?:-[A-Za-z0-9]{4}){3}-[A-Za-z0-9]{12})$"#

    package static func accepts(_ token: Span<UInt8>) -> Bool {
        guard let nameStart = nameStart(in: token) else { return isGrouped(token) }
        let nameCount = token.count - nameStart - 1
        guard (1...nameCharacterCountMax).contains(nameCount), token[token.count - 1] == UInt8(ascii: "]")
        else { return false }
        for place in nameStart..<nameStart + nameCount
        where !(token[place].isAlphanumeric || token[place].isOneOf("_-")) {
            return false
        }
        return true
    }

    package static func accepts(_ token: String) -> Bool { accepts(token.utf8.span) }

    /// Whether a text begins as a token of Expo's does and one of no other service.
    package static func isBegunBy(_ token: String) -> Bool { nameStart(in: token.utf8.span) != nil }

    /// - Returns: Where the name between the brackets begins; `nil` of a text with neither of the two beginnings.
    private static func nameStart(in token: Span<UInt8>) -> Int? {
        for beginning in ["ExponentPushToken[", "ExpoPushToken["] {
            let bytes = beginning.utf8
            if token.count >= bytes.count, zip(bytes, 0...).allSatisfy({ token[$1] == $0 }) {
                return bytes.count
            }
        }
        return nil
    }

    private static func isGrouped(_ token: Span<UInt8>) -> Bool {
        guard token.count == groups.reduce(groups.count - 1, +) else { return false }
        var place = 0
        for (index, count) in groups.enumerated() {
            if index > 0 {
                guard token[place] == UInt8(ascii: "-") else { return false }
                place += 1
            }
            for _ in 0..<count {
                guard token[place].isAlphanumeric else { return false }
                place += 1
            }
        }
        return true
    }
}
