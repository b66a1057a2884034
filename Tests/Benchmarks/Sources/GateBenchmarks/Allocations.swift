import Glibc
import Synchronization

/// Counts the objects that Swift puts on the heap: arrays, texts longer than fifteen bytes, boxes, instances.
///
/// The runtime keeps the function that makes them in a variable, for tools like this one
/// (`swift/Runtime/HeapObject.h`: `_swift_allocObject`, and the switch without which it is not looked at).
enum Allocations {
    private typealias Allocate =
        @convention(c) (UnsafeRawPointer?, Int, Int) -> UnsafeMutableRawPointer?

    private static let count = Atomic<Int>(0)
    private static var variable: UnsafeMutablePointer<Allocate>? {
        dlsym(nil, "_swift_allocObject")?.assumingMemoryBound(to: Allocate.self)
    }
    private static let original = variable!.pointee

    /// - Returns: `nil` where the runtime cannot be watched.
    static func count(during body: () throws -> Void) rethrows -> Int? {
        let name = "_swift_enableSwizzlingOfAllocationAndRefCountingFunctions_forInstrumentsOnly"
        guard let variable, let isWatched = dlsym(nil, name)?.assumingMemoryBound(to: Bool.self) else {
            return nil
        }
        let original = original
        count.store(0, ordering: .relaxed)
        variable.pointee = { metadata, byteCount, alignmentMask in
            Allocations.count.add(1, ordering: .relaxed)
            return Allocations.original(metadata, byteCount, alignmentMask)
        }
        isWatched.pointee = true
        defer {
            isWatched.pointee = false
            variable.pointee = original
        }
        try body()
        return count.load(ordering: .relaxed)
    }
}
