package import WireProtocol

/// The answer of a step that recorded something.
package struct Recorded {
    package var entry: EntryReference
    /// The same was recorded before; nothing was recorded again.
    package var isReplayed = false
    /// Why what was recorded changes no consent and no preference; `nil` where it does, or is about something else.
    package var noEffect: NoEffect?
    /// Who says that it goes on, and what can be changed: with ``WireProtocol/NoEffect/notOptional``.
    package var notOptional: NotOptional?
    /// More people share the number or mailbox than one step changes: the same request goes on with the others.
    package var isUnfinished = false
}

/// An answer that cites entries: made once they are durable.
package typealias Citing<Value> = @Sendable (_ places: EntryPlaces) -> Value

/// How the answers of a batch cite entries.
package struct EntryPlaces: Sendable {
    package let receipt: CommitReceipt
    /// The name in the checkpoint's first line.
    package let origin: String

    package init(receipt: CommitReceipt, origin: String) {
        self.receipt = receipt
        self.origin = origin
    }

    package subscript(_ reference: EntryReference) -> TrailReference {
        TrailReference(entry: reference.bytes, index: reference.index, origin: origin)
    }
}
