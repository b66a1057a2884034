import CanonicalJSON
package import GateVocabulary

/// Which facts, as a set over ``FactFields/all``.
struct FactSet: OptionSet, Hashable, Sendable {
    let rawValue: UInt32
    init(rawValue: UInt32) { self.rawValue = rawValue }

    static let all = FactSet(rawValue: (1 << UInt32(FactFields.count)) - 1)
}

/// A visitor is shown every fact in canonical order: the one list of them is ``FactFields/show(to:)``.
protocol FactVisitor: ~Copyable {
    /// - Parameters:
    ///   - name: In canonical JSON.
    ///   - get: `nil` for a fact nobody knows.
    mutating func visit<Value: Sendable>(
        _ name: StaticString, _ set: @escaping @Sendable (inout Facts, Value) -> Void,
        _ get: @escaping @Sendable (borrowing Facts) -> Value?,
        _ write: @escaping @Sendable (Value, inout CanonicalWriter) -> Void,
        _ read: @escaping @Sendable (inout EntryCursor) throws(EntryError) -> Value)
}

/// Writes the facts that are known as members. The list is inlined into it, so that no closure is called.
private struct FactWriter: ~Copyable, FactVisitor {
    let facts: Facts
    var json = CanonicalWriter(capacity: 1_024)
    var ends = FactFields.Ends(repeating: 1)
    private var index = 0

    init(_ facts: Facts) {
        self.facts = facts
        json.raw("{")
    }

    @inline(__always)
    mutating func visit<Value: Sendable>(
        _ name: StaticString, _: @escaping @Sendable (inout Facts, Value) -> Void,
        _ get: @escaping @Sendable (borrowing Facts) -> Value?,
        _ write: @escaping @Sendable (Value, inout CanonicalWriter) -> Void,
        _: @escaping @Sendable (inout EntryCursor) throws(EntryError) -> Value
    ) {
        if let value = get(facts) {
            json.key(name)
            write(value, &json)
        }
        // Far from 65,535: 21 regions, at most 20 of them of devices, have less than 2 KiB.
        ends[index] = UInt16(json.byteCount)
        index += 1
    }

    consuming func finish() -> (bytes: [UInt8], ends: FactFields.Ends) {
        json.raw("}")
        return (json.finish(), ends)
    }
}

/// How one fact is read: its key as it stands before the value, and what takes the value.
struct FactReader: Sendable {
    let name: String
    /// `"name":`.
    let key: [UInt8]
    let read: @Sendable (inout EntryCursor, inout Facts) throws(EntryError) -> Void
}

private struct FactReaders: FactVisitor {
    var all: [FactReader] = []

    mutating func visit<Value: Sendable>(
        _ name: StaticString, _ set: @escaping @Sendable (inout Facts, Value) -> Void,
        _: @escaping @Sendable (borrowing Facts) -> Value?,
        _: @escaping @Sendable (Value, inout CanonicalWriter) -> Void,
        _ read: @escaping @Sendable (inout EntryCursor) throws(EntryError) -> Value
    ) {
        all.append(
            FactReader(name: "\(name)", key: Array("\"\(name)\":".utf8)) {
                cursor, facts throws(EntryError) in set(&facts, try read(&cursor))
            })
    }
}

/// Facts as canonical JSON, written once: the same bytes are in a send's entry and in its outbox row.
package struct EncodedFacts: Sendable {
    /// The whole object, with every fact that somebody knows.
    package let bytes: [UInt8]
    /// Where each of ``FactFields/all`` ends; one that nobody knows ends where the one before it does.
    private let ends: FactFields.Ends

    package init(_ facts: Facts) {
        var writer = FactWriter(facts)
        FactFields.show(to: &writer)
        (bytes, ends) = writer.finish()
    }

    /// Key and value of one fact; empty when nobody knows it.
    private func member(_ index: Int) -> ArraySlice<UInt8> {
        let start = index == 0 ? 1 : Int(ends[index - 1])
        let end = Int(ends[index])
        return bytes[start < end && start > 1 ? start + 1..<end : start..<end]
    }

    /// The facts that are the same in all of several.
    ///
    /// - Parameter several: Not empty.
    static func shared(_ several: [EncodedFacts]) -> FactSet {
        guard several.count > 1 else { return .all }
        var shared: UInt32 = 0
        for index in 0..<FactFields.count {
            let first = several[0].member(index)
            if several.dropFirst().allSatisfy({ $0.member(index) == first }) { shared |= 1 << UInt32(index) }
        }
        return FactSet(rawValue: shared)
    }

    /// Writes the object of those facts in `set` that somebody knows.
    func write(_ set: FactSet, to json: inout CanonicalWriter) {
        guard set != .all else { return json.raw(bytes[...]) }
        json.raw("{")
        for index in 0..<FactFields.count where set.rawValue & (1 << UInt32(index)) != 0 {
            let member = member(index)
            guard !member.isEmpty else { continue }
            json.separate(after: UInt8(ascii: "{"))
            json.raw(member)
        }
        json.raw("}")
    }
}

/// Facts as bytes without building a tree first: entries are written for every send there is.
///
/// The spelling is that of `Facts.json`; a test holds the two against each other over every fact.
enum FactFields {
    static let all: [FactReader] = {
        var readers = FactReaders()
        show(to: &readers)
        precondition(readers.all.count == count, "FactFields.count is not the number of facts")
        return readers.all
    }()
    static let count = 30
    typealias Ends = InlineArray<30, UInt16>

    /// Shows all facts in canonical order, which is that of their names.
    @inline(__always)
    fileprivate static func show(to facts: inout some FactVisitor & ~Copyable) {
        facts.visit(
            "account_preference", { $0.accountPreference = $1 }, { $0.accountPreference }, name,
            readName)
        facts.visit(
            "account_region", { $0.accountRegion = $1 }, { $0.accountRegion }, region,
            readRegion)
        facts.visit(
            "account_type_preference", { $0.accountTypePreference = $1 }, { $0.accountTypePreference }, name,
            readName)
        facts.visit("age", { $0.age = $1 }, { $0.age }, name, readName)
        facts.visit(
            "category_count", { $0.categoryCount = $1 }, { $0.categoryCount }, integer, readCount)
        facts.visit("consent", { $0.consent = $1 }, { $0.consent }, consent, readConsent)
        facts.visit(
            "critical_alerts", { $0.criticalAlerts = $1 }, { $0.criticalAlerts }, boolean, readBoolean)
        facts.visit("destination", { $0.destination = $1 }, { $0.destination }, name, readName)
        facts.visit(
            "destination_preference", { $0.destinationPreference = $1 }, { $0.destinationPreference }, name,
            readName)
        facts.visit(
            "destination_type_preference", { $0.destinationTypePreference = $1 },
            { $0.destinationTypePreference }, name,
            readName)
        facts.visit("device_key", { $0.deviceKey = $1 }, { $0.deviceKey }, name, readName)
        facts.visit("device_regions", { $0.deviceRegions = $1 }, { $0.deviceRegions }, regions, readRegions)
        facts.visit("due", { $0.due = $1 }, { $0.due }, instant, readInstant)
        facts.visit(
            "everything_count", { $0.everythingCount = $1 }, { $0.everythingCount }, integer, readCount)
        facts.visit("expiry", { $0.expiry = $1 }, { $0.expiry }, instant, readInstant)
        facts.visit("fallback", { $0.fallback = $1 }, { $0.fallback }, name, readName)
        facts.visit("now", { $0.now = $1 }, { $0.now }, instant, readInstant)
        facts.visit("os_permission", { $0.osPermission = $1 }, { $0.osPermission }, name, readName)
        facts.visit(
            "own_request", { $0.ownRequest = $1 }, { $0.ownRequest }, consent, readConsent)
        facts.visit("params", { $0.params = $1 }, { $0.params }, name, readName)
        facts.visit("platform", { $0.platform = $1 }, { $0.platform }, name, readName)
        facts.visit("privacy", { $0.privacy = $1 }, { $0.privacy }, name, readName)
        facts.visit(
            "purpose_consent", { $0.purposeConsent = $1 }, { $0.purposeConsent }, consent,
            readConsent)
        facts.visit("push_enabled", { $0.pushEnabled = $1 }, { $0.pushEnabled }, boolean, readBoolean)
        facts.visit(
            "quiet_hours", { $0.quietHours = $1 }, { $0.quietHours }, quietHours,
            readQuietHours)
        facts.visit("recipient", { $0.recipient = $1 }, { $0.recipient }, name, readName)
        facts.visit("repetition", { $0.repetition = $1 }, { $0.repetition }, name, readName)
        facts.visit("sizes", { $0.sizes = $1 }, { $0.sizes }, sizes, readSizes)
        facts.visit("type_count", { $0.typeCount = $1 }, { $0.typeCount }, integer, readCount)
        facts.visit("withheld", { $0.withheld = $1 }, { $0.withheld }, boolean, readBoolean)
    }

    /// Reads an object of facts into `facts`; an unknown one is an error.
    static func read(_ cursor: inout EntryCursor, into facts: inout Facts) throws(EntryError) -> FactSet {
        try cursor.expect("{")
        if cursor.skip("}") { return [] }
        var index = 0
        var taken: UInt32 = 0
        repeat {
            // Both lists are sorted, so one walk over the names is enough.
            while index < all.count, !cursor.skip(all[index].key) { index += 1 }
            guard index < all.count else { throw cursor.failure("a known fact, in order, each once") }
            try all[index].read(&cursor, &facts)
            taken |= 1 << UInt32(index)
            index += 1
        } while cursor.skip(",")
        try cursor.expect("}")
        return FactSet(rawValue: taken)
    }

    // MARK: Writing values

    private static func name(_ value: some RawRepresentable<String>, _ json: inout CanonicalWriter) {
        json.text(value.rawValue)
    }

    private static func integer(_ value: Int, _ json: inout CanonicalWriter) { json.integer(Int64(value)) }

    private static func instant(_ value: Instant, _ json: inout CanonicalWriter) {
        json.integer(value.milliseconds)
    }

    private static func boolean(_ value: Bool, _ json: inout CanonicalWriter) { json.boolean(value) }

    private static func consent(_ value: ConsentFact, _ json: inout CanonicalWriter) {
        json.object { json in
            json.member("expires_at", value.expiresAt)
            json.member("method", name: value.method)
            json.member("state", name: value.state)
        }
    }

    private static func region(_ value: RegionObservation, _ json: inout CanonicalWriter) {
        json.object { json in
            json.member("code") { json in json.quoted { value.code.write(to: &$0) } }
            json.member("observed_at", value.observedAt)
            json.member("source", name: value.source)
        }
    }

    private static func regions(_ value: [RegionObservation], _ json: inout CanonicalWriter) {
        json.array(value) { region($1, &$0) }
    }

    private static func quietHours(_ value: QuietHoursFact, _ json: inout CanonicalWriter) {
        json.object { json in
            json.member("ends_at", value.endsAt)
            json.member("state", value.state)
        }
    }

    private static func sizes(_ value: PayloadSizes, _ json: inout CanonicalWriter) {
        json.object { json in
            json.member("full", value.full.map(Int64.init))
            json.member("generic", value.generic.map(Int64.init))
            json.member("sealed", value.sealed.map(Int64.init))
        }
    }

    // MARK: Reading values

    private static func readName<Value: RawRepresentable<String>>(
        _ cursor: inout EntryCursor
    ) throws(EntryError) -> Value {
        try cursor.name()
    }

    private static func readCount(_ cursor: inout EntryCursor) throws(EntryError) -> Int {
        try cursor.unsigned()
    }

    private static func readInstant(_ cursor: inout EntryCursor) throws(EntryError) -> Instant {
        try cursor.instant()
    }

    private static func readBoolean(_ cursor: inout EntryCursor) throws(EntryError) -> Bool {
        try cursor.boolean()
    }

    private static func readConsent(_ cursor: inout EntryCursor) throws(EntryError) -> ConsentFact {
        var members = try MemberCursor(&cursor)
        let expiresAt = members.has("\"expires_at\":", &cursor) ? try cursor.instant() : nil
        let method: ConsentMethod? = members.has("\"method\":", &cursor) ? try cursor.name() : nil
        try members.expect("\"state\":", &cursor)
        let state: ConsentState = try cursor.name()
        try members.end(&cursor)
        return ConsentFact(state: state, method: method, expiresAt: expiresAt)
    }

    private static func readRegion(_ cursor: inout EntryCursor) throws(EntryError) -> RegionObservation {
        var members = try MemberCursor(&cursor)
        try members.expect("\"code\":", &cursor)
        guard let code = RegionCode(try cursor.text(byteCountMax: 6)) else {
            throw cursor.failure("an ISO 3166 code")
        }
        try members.expect("\"observed_at\":", &cursor)
        let observedAt = try cursor.instant()
        try members.expect("\"source\":", &cursor)
        let source: RegionSource = try cursor.name()
        try members.end(&cursor)
        return RegionObservation(code: code, source: source, observedAt: observedAt)
    }

    private static func readRegions(_ cursor: inout EntryCursor) throws(EntryError) -> [RegionObservation] {
        var regions: [RegionObservation] = []
        try cursor.array(countMax: Facts.deviceRegionCountMax) { cursor, _ throws(EntryError) in
            regions.append(try readRegion(&cursor))
        }
        return regions
    }

    private static func readQuietHours(_ cursor: inout EntryCursor) throws(EntryError) -> QuietHoursFact {
        if cursor.skip(#"{"state":"off"}"#) { return .off }
        if cursor.skip(#"{"state":"outside"}"#) { return .outside }
        if cursor.skip(#"{"state":"zone_missing"}"#) { return .zoneMissing }
        try cursor.expect(#"{"ends_at":"#)
        let end = try cursor.instant()
        if cursor.skip(#","state":"inside_somewhere"}"#) { return .insideSomewhere(endsAt: end) }
        try cursor.expect(#","state":"inside"}"#)
        return .inside(endsAt: end)
    }

    private static func readSizes(_ cursor: inout EntryCursor) throws(EntryError) -> PayloadSizes {
        var members = try MemberCursor(&cursor)
        var sizes = PayloadSizes()
        if members.has("\"full\":", &cursor) { sizes.full = try cursor.unsigned() }
        if members.has("\"generic\":", &cursor) { sizes.generic = try cursor.unsigned() }
        if members.has("\"sealed\":", &cursor) { sizes.sealed = try cursor.unsigned() }
        try members.end(&cursor)
        return sizes
    }
}
