/// The bounds of a file that is imported. A file itself may be of any size: it is read piece by piece.
package enum ImportLimits {
    /// Bytes of one record. The gateway takes a line of 64 KiB, and what a map leaves out of a record may be three times as much.
    package static let recordByteCountMax = 256 * 1024
    /// Columns of a record. Exports of the systems that the handbook names have below a hundred, and one for each attribute of the
    /// company's own.
    package static let columnCountMax = 2_000
    /// Bytes read at once.
    static let readByteCount = 256 * 1024
    /// Bytes of a line that the gateway takes.
    package static let lineByteCountMax = 65_536
    /// Bytes of a map.
    static let mapNodeCountMax = 2_000
}
