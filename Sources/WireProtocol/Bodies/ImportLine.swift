package import CanonicalJSON
package import GateRecords
package import GateVocabulary

/// One line of `POST /v1/import`: a person, with everything that another system knew of them.
///
/// Its parts are the bodies of the routes that register one thing at a time, so that an imported person is read by their rules.
package struct ImportLine: WireBody, GivenRecord {
    /// Consents of one line; the same for withdrawals and preferences.
    package static let eventCountMax = 64

    /// One of several, with its place among those of the line. One that is none of its kind was refused before, and is left out.
    package struct Placed<Body: GivenRecord>: GivenElement {
        package let pointer: JSONPointer
        package let body: Body

        package static func read(all json: JSONValue, of name: String) -> [Self]? {
            json.arrayValue?.enumerated().compactMap { position, value in
                Body.read(given: value).map {
                    Self(pointer: JSONPointer([name, String(position)]), body: $0)
                }
            }
        }
    }

    /// A device, an address or a withdrawn consent, under the name that the caller has for it.
    package struct Named<Body: WireBody & Hashable>: GivenElement {
        package let name: String
        package let body: Body

        package static func read(all json: JSONValue, of _: String) -> [Self]? {
            json.objectValue?.members.compactMap { name, value in
                value.objectValue.map { Self(name: name, body: Body(given: $0)) }
            }
        }
    }

    package var user = UserID("")
    /// `nil` of somebody who is registered already.
    package var recipient: Given<RecipientRecord>?
    package var devices: [Named<Given<DeviceRecord>>] = []
    package var addresses: [Named<Given<AddressRecord>>] = []
    package var consents: [Placed<ConsentBody>] = []
    package var withdrawals: [Named<ConsentWithdrawBody>] = []
    package var preferences: [Placed<ImportedChoice>] = []
    /// Whether what is registered otherwise gives way.
    package var isReplacing = false
    /// Whether the line is only tried.
    package var isDryRun = false

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.given("user", \.user, "The caller's id for the person.")
        fields.given(
            "recipient", \.recipient, "What is known of the person; left out where they are registered.")
        fields.given(
            "devices", \.devices, "Devices by their ids.",
            named(DeviceRecord.givenShape, countMax: WireLimits.destinationCountMax))
        fields.given(
            "addresses", \.addresses, "Phone numbers and e-mail addresses by their ids.",
            named(AddressRecord.givenShape, countMax: WireLimits.destinationCountMax))
        fields.given(
            "consents", \.consents,
            "Consents with their own times, in the order in which they are recorded.",
            .leftOut(.list(of: ConsentBody.givenShape, countMax: eventCountMax)))
        fields.given(
            "withdrawals", \.withdrawals,
            "Withdrawals of consents, of this line or recorded before, by the ids of the consents.",
            named(ConsentWithdrawBody.givenShape, countMax: eventCountMax))
        fields.given(
            "preferences", \.preferences,
            "Choices with their own times. An opt-out of marketing withdraws; an opt-in is no consent.",
            .leftOut(.list(of: ImportedChoice.givenShape, countMax: eventCountMax)))
        fields.given(
            "replace", \.isReplacing,
            "Whether a recipient, device or address that is registered otherwise gives way to the line's.",
            .defaulted)
        fields.given(
            "dry_run", \.isDryRun,
            "Whether the line is only tried: the answer is as if, and nothing is recorded.", .defaulted)
    }

    private static func named(_ shape: Shape, countMax: Int) -> Giving {
        .leftOut(.map(keys: .identifier, values: shape, countMax: countMax))
    }

    package static let givenShape = given(
        as: "ImportedPerson",
        "A person as another system knew them. What is registered already and is otherwise here stays, and is named in the answer; with `replace` it gives way."
    )
    package static let givenExample: JSONValue = [
        "user": "u_42", "recipient": RecipientRecord.givenExample,
        "devices": ["d_1": DeviceRecord.givenExample], "addresses": ["a_1": AddressRecord.givenExample],
        "consents": [ConsentBody.givenExample],
        "withdrawals": ["c-20251103-7": ["event_time": "2026-01-03T10:00:00Z"]],
        "preferences": [ImportedChoice.givenExample],
    ]
}

/// A choice that was made in another system.
package struct ImportedChoice: GivenRecord {
    package var choice = PreferenceChoice.blank
    /// `nil` means on arrival.
    package var eventTime: Instant?

    package static let blank = Self()
    package static let fields = Fields<Self> { fields in
        fields.all(of: \.choice)
        fields.given(
            "event_time", \.eventTime,
            "When it was chosen; now when absent. A time later than now counts as now.")
    }

    package static let givenShape = given(as: "ImportedChoice")
    package static let givenExample: JSONValue = [
        "scope": "social", "state": "user_off", "source": "in_app_settings", "channel": "push",
        "event_time": "2026-01-03T10:00:00Z",
    ]
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
        return .success(Read(line: Self(given: object), refused: violations))
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
