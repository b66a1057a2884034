package import CanonicalJSON
package import GateRecords
package import GateVocabulary

/// One line of `POST /v1/import`: a person, with everything that another system knew of them.
///
/// Its parts are the bodies of the routes that register one thing at a time, so that an imported person is read by their rules.
package struct ImportLine: WireBody {
    /// Consents of one line; the same for withdrawals and preferences.
    package static let eventCountMax = 64

    /// One of several, with its place among those of the line.
    package struct Placed<Body: Sendable>: Sendable {
        package let pointer: JSONPointer
        package let body: Body
    }

    /// A device, an address or a withdrawn consent, under the name that the caller has for it.
    package struct Named<Body: Sendable>: Sendable {
        package let name: String
        package let body: Body
    }

    package var user: UserID
    /// `nil` of somebody who is registered already.
    package var recipient: Given<RecipientRecord>?
    package var devices: [Named<Given<DeviceRecord>>]
    package var addresses: [Named<Given<AddressRecord>>]
    package var consents: [Placed<ConsentBody>]
    package var withdrawals: [Named<ConsentWithdrawBody>]
    package var preferences: [Placed<ImportedChoice>]
    /// Whether what is registered otherwise gives way.
    package var isReplacing: Bool
    /// Whether the line is only tried.
    package var isDryRun: Bool

    package static let shape = declared(
        "ImportedPerson",
        "A person as another system knew them. What is registered already and is otherwise here stays, and is named in the answer; with `replace` it gives way."
    )

    package static let example: JSONValue = [
        "user": "u_42", "recipient": RecipientRecord.givenExample,
        "devices": ["d_1": DeviceRecord.givenExample], "addresses": ["a_1": AddressRecord.givenExample],
        "consents": [ConsentBody.example],
        "withdrawals": ["c-20251103-7": ["event_time": "2026-01-03T10:00:00Z"]],
        "preferences": [ImportedChoice.example],
    ]

    package init(from fields: BodyFields) {
        user = fields.required("user", "The caller's id for the person.")
        let given: JSONObject? = fields.optional(
            "recipient", as: RecipientRecord.givenShape,
            "What is known of the person; left out where they are registered.")
        recipient = given.map { Given(from: BodyFields($0)) }
        let devices: JSONObject? = fields.optional(
            "devices", as: Self.map(of: DeviceRecord.givenShape, countMax: WireLimits.destinationCountMax),
            "Devices by their ids.")
        self.devices = Self.read(devices) { Given(from: $0) }
        let addresses: JSONObject? = fields.optional(
            "addresses", as: Self.map(of: AddressRecord.givenShape, countMax: WireLimits.destinationCountMax),
            "Phone numbers and e-mail addresses by their ids.")
        self.addresses = Self.read(addresses) { Given(from: $0) }
        let consents: List? = fields.optional(
            "consents", as: .list(of: ConsentBody.shape, countMax: Self.eventCountMax),
            "Consents with their own times, in the order in which they are recorded.")
        self.consents = Self.read(consents, "consents") { ConsentBody(from: $0) }
        let withdrawals: JSONObject? = fields.optional(
            "withdrawals", as: Self.map(of: ConsentWithdrawBody.shape, countMax: Self.eventCountMax),
            "Withdrawals of consents, of this line or recorded before, by the ids of the consents.")
        self.withdrawals = Self.read(withdrawals) { ConsentWithdrawBody(from: $0) }
        let preferences: List? = fields.optional(
            "preferences", as: .list(of: ImportedChoice.shape, countMax: Self.eventCountMax),
            "Choices with their own times. An opt-out of marketing withdraws; an opt-in is no consent.")
        self.preferences = Self.read(preferences, "preferences") { ImportedChoice(from: $0) }
        isReplacing = fields.optional(
            "replace", default: false,
            "Whether a recipient, device or address that is registered otherwise gives way to the line's.")
        isDryRun = fields.optional(
            "dry_run", default: false,
            "Whether the line is only tried: the answer is as if, and nothing is recorded."
        )
    }

    private static func map(of shape: Shape, countMax: Int) -> Shape {
        .map(keys: .identifier, values: shape, countMax: countMax)
    }

    private static func read<Body>(_ map: JSONObject?, _ body: (BodyFields) -> Body) -> [Named<Body>] {
        (map?.members ?? []).compactMap { name, value in
            value.objectValue.map { Named(name: name, body: body(BodyFields($0))) }
        }
    }

    /// Elements that are none of their kind were refused before, and are left out.
    private static func read<Body>(
        _ list: List?, _ name: String, _ body: (BodyFields) -> Body
    ) -> [Placed<Body>] {
        (list?.elements ?? []).enumerated().compactMap { position, value in
            value.objectValue.map {
                Placed(
                    pointer: JSONPointer([name, String(position)]), body: body(BodyFields($0)))
            }
        }
    }

    private struct List: BodyValue {
        var elements: [JSONValue]

        static func read(body json: JSONValue) -> List? { json.arrayValue.map { List(elements: $0) } }
    }
}

/// A choice that was made in another system.
package struct ImportedChoice: BodyObject, Hashable {
    package var choice: PreferenceChoice
    /// `nil` means on arrival.
    package var eventTime: Instant?

    package static let shape = declaredInVariants("ImportedChoice")

    package static let example: JSONValue = [
        "scope": "social", "state": "user_off", "source": "in_app_settings", "channel": "push",
        "event_time": "2026-01-03T10:00:00Z",
    ]

    package init(from fields: BodyFields) {
        choice = PreferenceChoice(from: fields)
        eventTime = fields.optional(
            "event_time", "When it was chosen; now when absent. A time later than now counts as now.")
    }
}

extension ImportLine {
    /// A line without those of its parts that are none.
    package struct Read: Sendable {
        package var line: ImportLine
        package var refused: [Violation]
    }

    /// The members whose parts are refused one by one.
    private static let lists: Set<String> = [
        "devices", "addresses", "consents", "withdrawals", "preferences",
    ]

    /// Reads a line. A device, an address or an event that is not of its shape is left out and told: the person is registered without
    /// it. Everything else is refused as a whole.
    package static func readParts(_ bytes: [UInt8]) -> Result<Read, BodyError> {
        let content: JSONValue
        do throws(BodyError) {
            content = try Self.content(of: bytes)
        } catch {
            return .failure(error)
        }
        let violations = shape.violations(of: content)
        guard case .object(var object) = content else { return .failure(.invalid(violations)) }
        for violation in violations {
            guard let place = violation.pointer?.tokens, place.count > 1, lists.contains(place[0]) else {
                return .failure(.invalid(violations))
            }
            object = without(place[0], place[1], in: object)
        }
        return .success(Read(line: Self(from: BodyFields(object)), refused: violations))
    }

    private static func without(_ list: String, _ part: String, in object: JSONObject) -> JSONObject {
        var object = object
        if var map = object[list]?.objectValue {
            map[part] = nil
            object[list] = .object(map)
        } else if var elements = object[list]?.arrayValue, let position = Int(part),
            elements.indices.contains(position)
        {
            elements[position] = .null
            object[list] = .array(elements)
        }
        return object
    }
}
