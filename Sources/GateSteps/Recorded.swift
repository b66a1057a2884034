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

    init(
        _ entry: EntryReference, isReplayed: Bool = false, noEffect: NoEffect? = nil,
        isUnfinished: Bool = false
    ) {
        self.entry = entry
        self.isReplayed = isReplayed
        self.noEffect = noEffect
        self.isUnfinished = isUnfinished
    }
}

/// An answer that cites entries: made once they have their places in the trail.
package typealias Citing<Value> = @Sendable (_ places: EntryPlaces) -> Value

/// Where the entries of a batch stand, for the answers that cite them.
package struct EntryPlaces: Sendable {
    package let receipt: CommitReceipt
    /// The name in the checkpoint's first line.
    package let origin: String

    package init(receipt: CommitReceipt, origin: String) {
        self.receipt = receipt
        self.origin = origin
    }

    /// Where an entry stands that was expected at an index, or was there before.
    package func index(_ index: UInt64) -> UInt64 {
        index >= receipt.expectedIndex ? receipt[index].index : index
    }

    package subscript(_ reference: EntryReference) -> TrailReference {
        switch reference {
        case .new(let expected):
            let entry = receipt[expected]
            return TrailReference(origin: origin, index: entry.index, leaf: entry.leaf)
        case .recorded(let index, let leaf):
            return TrailReference(origin: origin, index: index, leaf: leaf)
        }
    }
}
