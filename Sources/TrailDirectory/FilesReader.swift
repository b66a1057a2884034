import AuditTrail

/// A trail's files as ``TrailVerifier`` reads them.
struct FilesReader: TrailReader {
    let files: any DurableFiles

    func read(_ path: TrailPath, into buffer: inout [UInt8]) throws -> Int? {
        try files.read(path.text, into: &buffer, byteCountMax: path.byteCountMax)
    }

    func byteCount(of path: TrailPath) throws -> Int? {
        try files.byteCount(path.text)
    }
}
