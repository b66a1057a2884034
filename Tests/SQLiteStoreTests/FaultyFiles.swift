import Foundation
import CSQLite
import Synchronization

/// A layer under SQLite, in this test process only, that can fail the n-th write or synchronization of
/// chosen folders, and that keeps what a power cut would leave: for each file its bytes as they were when
/// it was last synchronized.
///
/// It stands in for SQLite's default file system, so the code under test opens its files as always.
final class FaultyFiles: Sendable {
    enum Operation: Hashable, Sendable { case write, synchronize }

    /// What one folder does.
    final class Folder: Sendable {
        private struct State {
            var counts: [Operation: Int] = [:]
            var fault: (operation: Operation, at: Int, code: Int32, lasts: Bool)?
        }
        private let state = Mutex(State())
        /// Where the durable bytes of each file are kept; `nil` keeps none.
        let durable: String?

        init(durable: String?) { self.durable = durable }

        /// Starts counting from zero and fails operation number `at` (from 1), and every later one if it `lasts`.
        func fail(_ operation: Operation, at: Int, code: Int32, lasts: Bool = false) {
            state.withLock {
                $0.counts = [:]
                $0.fault = (operation, at, code, lasts)
            }
        }

        func heal() { state.withLock { $0.fault = nil } }

        /// How many operations of a kind there were since ``fail(_:at:code:lasts:)``.
        func count(_ operation: Operation) -> Int { state.withLock { $0.counts[operation, default: 0] } }

        fileprivate func outcome(of operation: Operation) -> Int32 {
            state.withLock { state in
                state.counts[operation, default: 0] += 1
                guard let fault = state.fault, fault.operation == operation else { return SQLITE_OK }
                let count = state.counts[operation, default: 0]
                return count == fault.at || (fault.lasts && count > fault.at) ? fault.code : SQLITE_OK
            }
        }

        fileprivate func keep(_ path: String) {
            guard let durable else { return }
            let target = durable + "/" + (path as NSString).lastPathComponent
            try? FileManager.default.removeItem(atPath: target)
            try? FileManager.default.copyItem(atPath: path, toPath: target)
        }

        fileprivate func forget(_ path: String) {
            guard let durable else { return }
            try? FileManager.default.removeItem(atPath: durable + "/" + (path as NSString).lastPathComponent)
        }
    }

    static let shared = FaultyFiles()

    private struct OpenFile {
        let folder: Folder
        let path: String
        /// Address of the functions the default file system gave it.
        let original: UInt

        var methods: sqlite3_io_methods {
            UnsafePointer<sqlite3_io_methods>(bitPattern: original)!.pointee
        }
    }
    private struct State {
        var folders: [String: Folder] = [:]
        var files: [UInt: OpenFile] = [:]
        /// For each table of functions, its address and that of the changed copy: databases, logs and
        /// journals have tables of their own.
        var copies: [UInt: UInt] = [:]
    }
    private let state = Mutex(State())
    // Written once while the shared instance is made, before SQLite can call anything here; then only read.
    nonisolated(unsafe) private let original: UnsafeMutablePointer<sqlite3_vfs>
    nonisolated(unsafe) private let layer: UnsafeMutablePointer<sqlite3_vfs>

    private init() {
        original = sqlite3_vfs_find(nil)
        layer = .allocate(capacity: 1)
        layer.initialize(to: original.pointee)
        layer.pointee.zName = UnsafePointer(strdup("faulty"))
        layer.pointee.xOpen = { _, name, file, flags, flagsFound in
            FaultyFiles.shared.open(name, file!, flags, flagsFound)
        }
        layer.pointee.xDelete = { _, name, synchronize in
            FaultyFiles.shared.delete(name, synchronize)
        }
        sqlite3_vfs_register(layer, 1)
    }

    /// Watches a folder; call before anything in it is opened.
    func watch(_ path: String, keepingDurable durable: String? = nil) -> Folder {
        let folder = Folder(durable: durable)
        state.withLock { $0.folders[path] = folder }
        return folder
    }

    func unwatch(_ path: String) { state.withLock { $0.folders[path] = nil } }

    private func open(
        _ name: sqlite3_filename?, _ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32,
        _ flagsFound: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        let code = original.pointee.xOpen(original, name, file, flags, flagsFound)
        guard code == SQLITE_OK, let name, let found = file.pointee.pMethods else { return code }
        let path = String(cString: name)
        guard let folder = state.withLock({ $0.folders[(path as NSString).deletingLastPathComponent] }) else {
            return code
        }
        let copy = state.withLock { state in
            let address = UInt(bitPattern: found)
            state.files[UInt(bitPattern: file)] = OpenFile(folder: folder, path: path, original: address)
            if let known = state.copies[address] { return known }
            let copy = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
            copy.initialize(to: found.pointee)
            copy.pointee.xWrite = { FaultyFiles.shared.write($0!, $1, $2, $3) }
            copy.pointee.xSync = { FaultyFiles.shared.synchronize($0!, $1) }
            copy.pointee.xClose = { FaultyFiles.shared.close($0!) }
            state.copies[address] = UInt(bitPattern: copy)
            return UInt(bitPattern: copy)
        }
        file.pointee.pMethods = UnsafePointer(bitPattern: copy)
        return code
    }

    private func known(_ file: UnsafeMutablePointer<sqlite3_file>) -> OpenFile {
        guard let known = state.withLock({ $0.files[UInt(bitPattern: file)] }) else {
            preconditionFailure("only files this layer opened have its functions")
        }
        return known
    }

    private func write(
        _ file: UnsafeMutablePointer<sqlite3_file>, _ bytes: UnsafeRawPointer?, _ count: Int32,
        _ offset: Int64
    ) -> Int32 {
        let known = known(file)
        let fault = known.folder.outcome(of: .write)
        return fault == SQLITE_OK ? known.methods.xWrite(file, bytes, count, offset) : fault
    }

    private func synchronize(_ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32) -> Int32 {
        let known = known(file)
        let fault = known.folder.outcome(of: .synchronize)
        guard fault == SQLITE_OK else { return fault }
        let code = known.methods.xSync(file, flags)
        if code == SQLITE_OK { known.folder.keep(known.path) }
        return code
    }

    private func close(_ file: UnsafeMutablePointer<sqlite3_file>) -> Int32 {
        let known = known(file)
        state.withLock { $0.files[UInt(bitPattern: file)] = nil }
        return known.methods.xClose(file)
    }

    private func delete(_ name: UnsafePointer<CChar>?, _ synchronize: Int32) -> Int32 {
        let code = original.pointee.xDelete(original, name, synchronize)
        if code == SQLITE_OK, let name {
            let path = String(cString: name)
            state.withLock { $0.folders[(path as NSString).deletingLastPathComponent] }?.forget(path)
        }
        return code
    }
}
