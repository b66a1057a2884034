package import CanonicalJSON
import GateRecords
package import GateVocabulary

/// A part of a path that holds a value: `{user}` in `/v1/recipients/{user}`.
package struct PathPart<Value: Sendable>: Sendable {
    package let name: String
    package let means: String
    /// Keywords of JSON Schema beside `"type": "string"`.
    package let schema: JSONObject
    /// Completes "expected …".
    let expectation: String
    /// Whether it is the rest of the path, slashes and all.
    package let isRest: Bool
    let read: @Sendable (String) -> Value?

    private init(
        _ name: String, _ rule: TextRule, isRest: Bool = false, _ means: String,
        read: @escaping @Sendable (String) -> Value?
    ) {
        self.name = name
        self.means = means
        schema = rule.schema
        expectation = rule.expectation
        self.isRest = isRest
        self.read = { rule.accepts($0) ? read($0) : nil }
    }

    package var parameter: Parameter {
        Parameter(
            name: name, place: .path,
            schema: JSONObject([("type", "string")] + schema.map { ($0.key, $0.value) }), means: means)
    }
}

extension PathPart where Value == UserID {
    package static var user: PathPart<UserID> {
        PathPart("user", .identifier, "The caller's id for a person.") { UserID($0) }
    }
}

extension PathPart where Value == DestinationID {
    package static var device: PathPart<DestinationID> {
        PathPart("device", .identifier, "A device of the person.") { DestinationID($0) }
    }
    package static var address: PathPart<DestinationID> {
        PathPart("address", .identifier, "A phone number or e-mail address of the person, by its id.") {
            DestinationID($0)
        }
    }
}

extension PathPart where Value == SendID {
    package static var send: PathPart<SendID> {
        PathPart("send_id", .uuid, "The gateway's id for a send.") { SendID(uuidText: $0) }
    }
}

extension PathPart where Value == KeyID {
    package static var deviceKey: PathPart<KeyID> {
        PathPart("key_id", .keyID, "A device key's id.") { KeyID(hexadecimal: $0) }
    }
}

extension PathPart where Value == TypeID {
    package static var type: PathPart<TypeID> {
        PathPart("type", .identifier, "A notification type.") { TypeID($0) }
    }
}

extension PathPart where Value == String {
    package static var consent: PathPart<String> {
        PathPart("consent", .identifier, "The reporter's id of a consent record.") { $0 }
    }
    package static var scope: PathPart<String> {
        PathPart("scope", .identifier, "A category, or a type that can be muted alone.") { $0 }
    }
    /// A key's id in the keyring, or a device key's 32 hexadecimal digits.
    package static var key: PathPart<String> {
        PathPart("key", .identifier, "A key of the keyring, or a device key's id.") { $0 }
    }
    package static var tile: PathPart<String> {
        PathPart(
            "tile", .tile, isRest: true,
            "A file of the C2SP `tlog-tiles` layout, e.g. `0/x001/234.p/17` or `entries/000`; its slashes may stand as they are or encoded."
        ) { $0 }
    }
}
