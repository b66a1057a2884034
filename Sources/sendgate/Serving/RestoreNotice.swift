import CommandTerminal
import GateSteps
import KeyFiles
import SQLiteStore

extension CommandFailure {
    static let restoreUnderWay = CommandFailure(
        "a restore was begun in this state directory and has not ended",
        hint: "run `sendgate restore` again; it goes on where it was")

    /// Reads keys, or opens a state directory with them. Where one is missing, the failure tells of a restore that has not
    /// ended: the databases, which say so, cannot be opened without the key.
    static func tellingOfRestore<Result>(
        in stateDirectory: String, _ body: () throws -> Result
    ) throws -> Result {
        do {
            return try body()
        } catch  where isMissingKey(error) {
            guard SQLiteStore.hasUnverifiedSetting(RestoreUnderWay.settingName, in: stateDirectory) else {
                throw error
            }
            throw CommandFailure(
                "\(restoreUnderWay.message), and \(error)",
                hint:
                    "put the key's file back from the newest copy of the key directory, and run `sendgate restore` again; it goes on where it was"
            )
        }
    }

    private static func isMissingKey(_ error: any Error) -> Bool {
        switch error {
        case KeyFileError.missing, KeyFileError.missingKey, StoreOpeningError.missingDataKey: true
        default: false
        }
    }
}
