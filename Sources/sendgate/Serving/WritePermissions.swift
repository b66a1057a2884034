import CommandTerminal
import Foundation

/// Who may write the files that the gateway believes.
///
/// The state is the gateway's alone, so its group may not write there either. A trail, a bundle and a configuration may
/// come from a checkout or an installer with a group of its own (umask 002), so only everybody may not.
enum WritePermissions {
    struct Offence: Hashable {
        var path: String
        /// Permission bits.
        var mode: UInt32
    }

    /// Offences shown; one is enough to be refused.
    private static let countShown = 8

    /// Everything in a folder that has one of `bits`, the folder included, sorted. Symbolic links are not followed: no
    /// reader of these folders does. Nothing for a folder that is not there.
    static func offences(in folder: String, _ bits: mode_t) -> [Offence] {
        var found: [Offence] = []
        func look(_ path: String, _ status: stat) {
            guard status.st_mode & S_IFMT != S_IFLNK, status.st_mode & bits != 0 else { return }
            found.append(Offence(path: path, mode: UInt32(status.st_mode & 0o7777)))
        }
        var status = stat()
        // The folder itself may be reached through a link.
        guard stat(folder, &status) == 0 else { return [] }
        look(folder, status)
        let names = FileManager.default.enumerator(atPath: folder)
        while let name = names?.nextObject() as? String {
            let path = "\(folder)/\(name)"
            if lstat(path, &status) == 0 { look(path, status) }
        }
        return found.sorted { $0.path < $1.path }
    }

    /// Refuses a state or a trail that others may have written. Keys are looked at when they are read, and so is the
    /// bundle, which may also come while the gateway runs.
    static func demand(state: String, trail: String?) throws(CommandFailure) {
        // Who may use the state's own folder is the store's to say.
        let inState = offences(in: state, 0o022).filter { $0.path != state }
        if let failure = failure(inState, who: "somebody else", chmod: "go-w") { throw failure }
        guard let trail else { return }
        if let failure = failure(offences(in: trail, S_IWOTH), who: "everybody", chmod: "o-w") {
            throw failure
        }
    }

    private static func failure(_ offences: [Offence], who: String, chmod: String) -> CommandFailure? {
        guard !offences.isEmpty else { return nil }
        let shown = offences.prefix(countShown).map { "`\($0.path)` (mode \(String($0.mode, radix: 8)))" }
        let more = offences.count - shown.count
        return CommandFailure(
            "\(who) may write \(shown.joined(separator: ", "))\(more > 0 ? " and \(more) more" : "")",
            hint:
                "run `chmod \(chmod)` on it, and find out what was written: `sendgate audit verify` for the trail, a backup for the state"
        )
    }
}
