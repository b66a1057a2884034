public import CanonicalJSON

/// How moments and identifiers stand in JSON.
extension CanonicalWriter {
    /// Milliseconds since 1970.
    @inlinable
    package mutating func member(_ key: StaticString, _ value: Instant?) { member(key, value?.milliseconds) }

    @inlinable
    package mutating func member(_ key: StaticString, hexadecimal id: RandomIdentifier<some IdentifierKind>?)
    {
        guard let id else { return }
        self.key(key)
        hexadecimal(of: id)
    }

    @inlinable
    package mutating func member(_ key: StaticString, uuid id: RandomIdentifier<some IdentifierKind>?) {
        guard let id else { return }
        self.key(key)
        uuid(of: id)
    }

    /// 32 lower-case digits, in quotation marks.
    @inlinable
    package mutating func hexadecimal(of id: RandomIdentifier<some IdentifierKind>) {
        quoted { $0.hexadecimal(high: id.high, low: id.low) }
    }

    /// `8-4-4-4-12` lower-case digits, in quotation marks.
    @inlinable
    package mutating func uuid(of id: RandomIdentifier<some IdentifierKind>) {
        quoted { $0.uuid(high: id.high, low: id.low) }
    }
}
