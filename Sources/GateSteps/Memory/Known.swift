import GateRecords

/// A row that was looked up, or why it cannot be read: the error is thrown to a step that reads the row and to no other.
///
/// The row lies in a box of its own, so that keeping, passing on and forgetting it counts one reference, however many the row
/// itself has.
package indirect enum Known<Value> {
    case success(Value)
    case failure(StoreError)

    package func get() throws(StoreError) -> Value {
        switch self {
        case .success(let value): return value
        case .failure(let error): throw error
        }
    }

    package func map<Other>(_ change: (Value) -> Other) -> Known<Other> {
        switch self {
        case .success(let value): .success(change(value))
        case .failure(let error): .failure(error)
        }
    }
}

/// The same of a value that is little more than a reference itself, without a box.
package enum KnownInline<Value> {
    case success(Value)
    indirect case failure(StoreError)

    package func get() throws(StoreError) -> Value {
        switch self {
        case .success(let value): return value
        case .failure(let error): throw error
        }
    }
}
