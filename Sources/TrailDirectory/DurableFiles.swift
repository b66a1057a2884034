/// The part of a file system a trail is written through. All paths are relative to the trail's directory and
/// are made by this module, never by another process.
///
/// - Durability: what ``write(_:_:)`` returned from is on the disk under a name that may not be; names are on
///   the disk after ``syncDirectory(_:)`` of the directory they are in, and not before.
/// - Ordering: none between a crash and the last sync: each name that was not synced may be there or not.
/// - Retry: never after ``TrailError/syncFailed(path:code:)``. Every other failure left the names as they were.
/// - Concurrency: one caller at a time.
protocol DurableFiles {
    /// Creates a file that does not exist yet, writes all of it and syncs it. A failure may leave a part of it.
    func write(_ path: String, _ bytes: [UInt8]) throws(TrailError)
    /// Gives a file another name, replacing what had it, in one step.
    func rename(_ path: String, to newPath: String) throws(TrailError)
    /// Makes the names in a directory durable. The empty path is the trail's directory itself.
    func syncDirectory(_ path: String) throws(TrailError)
    /// Makes one directory; nothing happens when it is there.
    func makeDirectory(_ path: String) throws(TrailError)
    /// Removes a file; nothing happens when there is none.
    func remove(_ path: String) throws(TrailError)
    /// Removes an empty directory; nothing happens when there is none.
    func removeDirectory(_ path: String) throws(TrailError)
    /// The names in a directory, in no order, without `.` and `..`; none when it does not exist.
    func list(_ path: String) throws(TrailError) -> [String]
    /// Puts a file's bytes at the start of `buffer`, which is grown when too small.
    ///
    /// - Returns: How many there are, or `nil` when there is no such file.
    /// - Throws: ``TrailError/notTrailFile(path:)`` when there are more than `byteCountMax`.
    func read(_ path: String, into buffer: inout [UInt8], byteCountMax: Int) throws(TrailError) -> Int?
    /// `nil` when there is no such file.
    func byteCount(_ path: String) throws(TrailError) -> Int?
}

extension DurableFiles {
    func read(_ path: String, byteCountMax: Int) throws(TrailError) -> [UInt8]? {
        var buffer: [UInt8] = []
        guard let count = try read(path, into: &buffer, byteCountMax: byteCountMax) else { return nil }
        buffer.removeLast(buffer.count - count)
        return buffer
    }
}
