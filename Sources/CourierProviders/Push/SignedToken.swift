import CanonicalJSON
import Crypto
import CryptoExtras
import Foundation

/// A JSON Web Token (RFC 7519) in its compact form, signed by the courier.
enum SignedToken {
    /// ES256: the signature is r and s, 32 bytes each (RFC 7518, section 3.4).
    static func es256(
        header: JSONObject, claims: JSONObject, key: P256.Signing.PrivateKey
    ) throws -> String {
        let signed = signedPart(header, claims)
        return signed + "." + base64url(try key.signature(for: Data(signed.utf8)).rawRepresentation)
    }

    /// RS256: RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518, section 3.3), which is all that Google's token server takes.
    static func rs256(
        header: JSONObject, claims: JSONObject, key: _RSA.Signing.PrivateKey
    ) throws -> String {
        let signed = signedPart(header, claims)
        let signature = try key.signature(for: Data(signed.utf8), padding: .insecurePKCS1v1_5)
        return signed + "." + base64url(signature.rawRepresentation)
    }

    private static func signedPart(_ header: JSONObject, _ claims: JSONObject) -> String {
        [header, claims].map { base64url(Data(CanonicalJSON.write($0))) }.joined(separator: ".")
    }

    /// RFC 4648, section 5, without padding.
    private static func base64url(_ bytes: Data) -> String {
        bytes.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing(
            "=", with: "")
    }
}
