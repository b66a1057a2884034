import CanonicalJSON
import CourierModel
import CryptoExtras

/// The JSON file that Google gives out for a service account.
struct ServiceAccount: Sendable {
    var projectID: String
    var clientEmail: String
    var keyID: String?
    var key: _RSA.Signing.PrivateKey
    /// Where tokens are asked for, `https://oauth2.googleapis.com/token`.
    var tokenURI: String
    var tokenEndpoint: ProviderEndpoint
    var tokenPath: String

    init(_ file: CredentialFile) throws(CredentialError) {
        func refusal(_ why: String) -> CredentialError {
            CredentialError(
                path: file.path, why: why,
                hint: "give the JSON key of a service account, as the Google Cloud console makes it")
        }
        let bytes = try file.read()
        guard case .success(.object(let object)) = Result(catching: { try CanonicalJSON.read(bytes) }) else {
            throw refusal("is not a JSON object")
        }
        func text(_ name: String) throws(CredentialError) -> String {
            guard let text = object[name]?.stringValue, !text.isEmpty else {
                throw refusal("has no `\(name)`")
            }
            return text
        }
        guard try text("type") == "service_account" else { throw refusal("is not of a service account") }
        projectID = try text("project_id")
        // It becomes a part of the path (Google Cloud, "Creating and managing projects": 6 to 30 of these).
        guard projectID.utf8.count <= 63, projectID.wholeMatch(of: /[a-z0-9:.\-]+/) != nil else {
            throw refusal("has a `project_id` that no project has")
        }
        clientEmail = try text("client_email")
        keyID = object["private_key_id"]?.stringValue
        tokenURI = try text("token_uri")
        guard let match = tokenURI.wholeMatch(of: /(https:\/\/[^\/?#]+)(\/[!-~]*)/) else {
            throw refusal("has a `token_uri` that is no https address")
        }
        do {
            tokenEndpoint = try ProviderEndpoint(url: String(match.1))
        } catch {
            throw refusal("has a `token_uri` that is no https address")
        }
        tokenPath = String(match.2)
        do {
            key = try _RSA.Signing.PrivateKey(pemRepresentation: try text("private_key"))
        } catch let error as CredentialError {
            throw error
        } catch {
            throw refusal("has a `private_key` that is no RSA key of 2,048 bits and more")
        }
    }
}
