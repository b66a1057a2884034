package import CanonicalJSON
package import GateVocabulary

extension DeliveryOrder {
    /// Longest body of `POST /v1/deliveries` in bytes: 4,096 of a provider's body for a push, 64 KiB of mail, and what stands
    /// around them.
    package static let bytesMax = 262_144

    /// - Throws: `JSONShapeError` with the pointer of the member that does not fit. Members that are not known are passed over,
    ///   so that a newer gateway may add some.
    package init(_ value: JSONValue) throws(JSONShapeError) {
        var members = try JSONMembers(value, at: .root)
        self.init(
            message: try members.required("message_id", JSONShape.uuid),
            send: try members.required("send_id", JSONShape.uuid),
            destination: try members.required("destination", JSONShape.identifier),
            channel: try members.required("channel", JSONShape.name),
            platform: try members.optional("platform", JSONShape.name),
            provider: try members.optional("provider", JSONShape.name),
            app: try members.optional("app", JSONShape.text),
            token: try members.required("token", JSONShape.text),
            headers: try members.required("headers", Self.headers),
            body: try members.required("body", Self.anything),
            expiresAt: try members.required("expires_at", JSONShape.time),
            handOverBy: try members.optional("hand_over_by", Self.deadline))
    }

    private static func anything(_ value: JSONValue, _: JSONPointer) -> JSONValue { value }

    private static func headers(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> [String: String] {
        let members = try JSONMembers(value, at: pointer)
        var headers: [String: String] = [:]
        for (name, value) in members.object {
            headers[name] = try JSONShape.text(value, pointer.appending(name))
        }
        return headers
    }

    private static func deadline(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> HandOverDeadline {
        var members = try JSONMembers(value, at: pointer)
        return HandOverDeadline(
            bootID: try members.required("boot_id", JSONShape.text),
            uptimeMilliseconds: try members.required("uptime_ms", JSONShape.integer))
    }
}

extension JSONShape {
    /// The id of a message or a send.
    static func uuid<Kind: IdentifierKind>(
        _ value: JSONValue, _ pointer: JSONPointer
    ) throws(JSONShapeError) -> RandomIdentifier<Kind> {
        guard let id = RandomIdentifier<Kind>(uuidText: try text(value, pointer)) else {
            throw JSONShapeError(pointer, "expected a UUID")
        }
        return id
    }

    static func time(_ value: JSONValue, _ pointer: JSONPointer) throws(JSONShapeError) -> Instant {
        guard let instant = Instant(rfc3339: try text(value, pointer)) else {
            throw JSONShapeError(pointer, "expected a time such as `2026-11-29T12:00:00.000Z`")
        }
        return instant
    }
}
