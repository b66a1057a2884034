/// The members of a JSON object, always in canonical order: keys sorted by UTF-16 code units, each once.
package struct JSONObject: Sendable {
    package typealias Member = (key: String, value: JSONValue)

    /// In canonical order.
    package private(set) var members: [Member]

    package init() {
        members = []
    }

    /// - Precondition: No key occurs twice. Keys that come from outside go through
    ///   ``CanonicalJSON/read(_:limits:)-([UInt8],_)``, which refuses duplicates with an error.
    package init(_ members: some Sequence<(String, JSONValue)>) {
        var sorted: [Member] = members.map { (key: $0.0, value: $0.1) }
        // Most are written down in their order.
        let isSorted = sorted.indices.dropFirst().allSatisfy {
            CodeUnits.precedes(sorted[$0 - 1].key, sorted[$0].key)
        }
        if !isSorted { sorted.sort { CodeUnits.precedes($0.key, $1.key) } }
        for index in sorted.indices.dropFirst() where !isSorted {
            precondition(
                !CodeUnits.equal(sorted[index - 1].key, sorted[index].key),
                "a JSON object was built with the key `\(sorted[index].key)` twice")
        }
        self.members = sorted
    }

    /// - Precondition: `members` are in canonical order and no key occurs twice; the reader proves it.
    init(canonical members: [Member]) {
        self.members = members
    }

    package var count: Int { members.count }
    package var isEmpty: Bool { members.isEmpty }

    /// The keys, in canonical order.
    package var keys: some Sequence<String> { members.lazy.map(\.key) }

    /// Assigning `nil` removes the member; assigning ``JSONValue/null`` stores a JSON `null`.
    package subscript(_ key: String) -> JSONValue? {
        get {
            // Nearly every object has a few members, whose keys are of different lengths.
            if members.count <= 8 {
                for index in members.indices where CodeUnits.equal(members[index].key, key) {
                    return members[index].value
                }
                return nil
            }
            let index = Self.lowerBound(of: key, in: members)
            guard index < members.count, CodeUnits.equal(members[index].key, key) else { return nil }
            return members[index].value
        }
        set {
            let index = Self.lowerBound(of: key, in: members)
            let found = index < members.count && CodeUnits.equal(members[index].key, key)
            switch (found, newValue) {
            case (true, .some(let value)): members[index].value = value
            case (true, .none): members.remove(at: index)
            case (false, .some(let value)): members.insert((key: key, value: value), at: index)
            case (false, .none): break
            }
        }
    }

    /// The members but those with one of `keys`. One pass; cheaper than removing them one by one.
    ///
    /// - Parameter keys: In canonical order.
    package func without(sortedKeys keys: [String]) -> JSONObject {
        var kept: [Member] = []
        kept.reserveCapacity(members.count)
        var next = 0
        for member in members {
            var order = 1
            while next < keys.count {
                order = CodeUnits.compare(keys[next], member.key)
                if order >= 0 { break }
                next += 1
            }
            if next == keys.count || order != 0 { kept.append(member) }
        }
        return JSONObject(canonical: kept)
    }

    /// The members that `isKept` says.
    package func filtered(_ isKept: (Member) -> Bool) -> JSONObject {
        JSONObject(canonical: members.filter(isKept))
    }

    /// The position of the first member whose key does not stand before `key`.
    static func lowerBound(of key: String, in members: [Member]) -> Int {
        CodeUnits.withBytes(key) { key in
            var low = 0
            var high = members.count
            while low < high {
                let middle = (low + high) / 2
                let order = CodeUnits.withBytes(members[middle].key) { CodeUnits.compare($0, key) }
                if order < 0 { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }
}

extension JSONObject: Sequence {
    package func makeIterator() -> IndexingIterator<[Member]> { members.makeIterator() }
    package var underestimatedCount: Int { members.count }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, JSONValue)...) { self.init(elements) }
}

extension JSONObject: Hashable {
    package static func == (left: JSONObject, right: JSONObject) -> Bool {
        guard left.members.count == right.members.count else { return false }
        for (left, right) in zip(left.members, right.members) {
            guard CodeUnits.equal(left.key, right.key), left.value == right.value else { return false }
        }
        return true
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(members.count)
        for member in members {
            hasher.combine(codeUnitsOf: member.key)
            hasher.combine(member.value)
        }
    }
}

extension JSONObject: CustomStringConvertible {
    /// The canonical text.
    package var description: String { JSONValue.object(self).description }
}
